//! DynamoDB's data model, pure: attribute values, exact numbers, items, key bytes, table schemas
//! and the expression language. Nothing here reads a clock, a disk or a network.

pub mod binary;
pub mod expression;
pub mod item;
pub mod json;
pub mod key;
pub mod map;
pub mod number;
pub mod schema;
pub mod set;
pub mod value;

pub use binary::{ItemRef, ValueRef};
pub use item::Item;
pub use key::KeyKind;
pub use map::{Map, Name};
pub use number::{Number, NumberError};
pub use set::{Set, SetError};
pub use value::{Value, ValueError, ValueKind};
