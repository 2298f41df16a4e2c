//! AWS IoT SQL, version 2016-03-23, pure: statements, topic filters and substitution templates,
//! parsed and checked once and evaluated on messages. Nothing here reads a clock or a network, draws
//! random numbers of its own, or panics on input.
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

mod attribute;
mod convert;
mod decimal;
mod evaluate;
mod explain;
mod functions;
mod json;
mod message;
mod object;
mod operators;
mod parse_expression;
mod parser;
mod select;
mod statement;
mod syntax_error;
mod template;
mod token;
pub mod topic;
mod tree;
mod value;
mod wide;

pub use attribute::AttributeError;
pub use decimal::{Decimal, DecimalError};
pub use evaluate::{EvaluationError, NOTES_MAX, VALUE_DEPTH_MAX, WORK_MAX};
pub use explain::{Explanation, Note};
pub use json::{JSON_DEPTH_MAX, JsonError, JsonProblem};
pub use message::{Message, Payload, Properties, Randomness};
pub use object::{Members, Object};
pub use parser::{
    ALIAS_DEPTH_MAX, EXPRESSION_DEPTH_MAX, SELECT_ITEMS_MAX, TEXT_LEN_MAX_BYTES,
    VARIABLE_NAME_CHARS_MAX, VARIABLES_MAX,
};
pub use statement::{Outcome, SQL_VERSION, Statement, Variables};
pub use syntax_error::SyntaxError;
pub use template::{RENDERED_LEN_MAX_BYTES, RenderError, Template};
pub use topic::{TopicFilter, TopicFilterError, TopicNameError};
pub use value::{Kind, Value};
