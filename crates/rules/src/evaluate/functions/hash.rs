//! Digests of texts, in hexadecimal.

use md2::Md2;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::Function;
use super::text::text;
use crate::evaluate::{Context, Fault};
use crate::value::Value;

pub(super) fn call(
    function: Function,
    argument: &Value,
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    let text = text(argument, context)?;
    let bytes = text.as_bytes();
    Ok(Value::String(match function {
        Function::Md2 => hex::encode(Md2::digest(bytes)),
        Function::Md5 => hex::encode(Md5::digest(bytes)),
        Function::Sha1 => hex::encode(Sha1::digest(bytes)),
        Function::Sha224 => hex::encode(Sha224::digest(bytes)),
        Function::Sha256 => hex::encode(Sha256::digest(bytes)),
        Function::Sha384 => hex::encode(Sha384::digest(bytes)),
        _ => hex::encode(Sha512::digest(bytes)),
    }))
}
