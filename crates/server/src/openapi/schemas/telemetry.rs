//! Schemas of telemetry fields.

use homeport_systems::telemetry::{MessageType, ThingName};

use super::{of, parameters, text_schemas};

/// Graphic ASCII without slashes and wildcards, for names that become part of a topic.
const TOPIC_THING_NAME: &str = r#"^[!"$-*,-.0-~]+$"#;

parameters! {
    ThingPath in Path {
        /// Thing name
        thing: thing_name;
    }
    TopicThingPath in Path {
        /// Thing name
        thing: topic_thing_name;
    }
    ThingQuery in Query {
        /// Thing whose history is replayed
        thing: thing_name, required = true;
    }
    OptionalMessageType in Query {
        /// Message type; all types if absent
        message_type: word, required = false;
    }
    RequiredMessageType in Query {
        /// Message type
        message_type: word, required = true;
    }
}

text_schemas! {
    thing_name = of::<ThingName>();
    topic_thing_name = of::<ThingName>().pattern(Some(TOPIC_THING_NAME));
    /// A message type or a command.
    word = of::<MessageType>();
}
