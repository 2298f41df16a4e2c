//! AWS IoT SQL, version 2016-03-23: statements, topic filters and substitution templates, which are
//! parsed and checked once and evaluated on messages. Pure code: no clock, no network, no own
//! randomness, and no panic on any input.
//!
//! ```
//! use homeport_rules::{Message, Outcome, Payload, Properties, Statement};
//!
//! let statement = Statement::parse("SELECT *, topic(2) AS thing FROM 'van/+/telemetry' WHERE volts > 12")?;
//! let payload = Payload::new(br#"{"volts": 13.2}"#);
//! let message = Message {
//!     topic: "van/van-01/telemetry",
//!     payload: &payload,
//!     client_id: Some("van-01"),
//!     principal: None,
//!     source_ip: None,
//!     account_id: "homeport",
//!     now_ms: 1_733_529_600_000,
//!     trace_id: "",
//!     properties: Properties::default(),
//! };
//! let Outcome::Matched(value) = statement.evaluate(&message, &mut |_: &mut [u8]| ())? else {
//!     panic!("13.2 is more than 12");
//! };
//! assert_eq!(value.to_json(), r#"{"volts":13.2,"thing":"van-01"}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod evaluate;
mod message;
mod parse;
mod statement;
mod template;
pub mod topic;
mod value;

pub use homeport_item::{Decimal, DecimalError};

pub use evaluate::explain::{Explanation, Note};
pub use evaluate::{EvaluationError, NOTES_MAX, VALUE_DEPTH_MAX, WORK_MAX};
pub use message::{Message, Payload, Properties, Randomness};
pub use parse::statement::{
    ALIAS_DEPTH_MAX, EXPRESSION_DEPTH_MAX, SELECT_ITEMS_MAX, TEXT_LEN_MAX_BYTES,
    VARIABLE_NAME_CHARS_MAX, VARIABLES_MAX,
};
pub use parse::syntax_error::SyntaxError;
pub use statement::{Outcome, SQL_VERSION, Statement, Variables};
pub use template::{RENDERED_LEN_MAX_BYTES, RenderError, Template};
pub use topic::{TopicFilter, TopicFilterError, TopicNameError};
pub use value::attribute::AttributeError;
pub use value::json::{JSON_DEPTH_MAX, JsonError, JsonProblem};
pub use value::object::{Members, Object};
pub use value::{Kind, Value};
