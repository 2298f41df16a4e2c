//! DynamoDB's data model: attribute values, exact numbers, items, key encoding, table schemas and
//! the expression language. Pure code: no clock, no disk, no network.

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
pub use number::{Decimal, DecimalError, Number, NumberError};
pub use set::{Set, SetError};
pub use value::{Value, ValueError, ValueKind};
