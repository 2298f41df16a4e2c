//! Schemas of telemetry fields.

use homeport_systems::telemetry::{THING_NAME_LEN_MAX, WORD_LEN_MAX};

use super::{GRAPHIC_ASCII, parameters, text_schemas};

/// Graphic ASCII without slashes.
const THING_NAME: &str = "^[!-.0-~]+$";
/// Graphic ASCII without slashes and wildcards, for names that become part of a topic.
const TOPIC_THING_NAME: &str = r#"^[!"$-*,-.0-~]+$"#;
const THING_EXAMPLE: &str = "storyteller-van-01";

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
    thing_name(THING_NAME, 1..=THING_NAME_LEN_MAX).examples([THING_EXAMPLE]);
    topic_thing_name(TOPIC_THING_NAME, 1..=THING_NAME_LEN_MAX).examples([THING_EXAMPLE]);
    /// A message type or a command.
    word(GRAPHIC_ASCII, 1..=WORD_LEN_MAX);
}
