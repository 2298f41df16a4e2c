//! Functions on values of any type: access to collections, their construction, and defaults.

use std::borrow::Cow;

use crate::evaluate::convert::{to_index, to_text};
use crate::evaluate::{Context, Fault, shown};
use crate::value::object::Object;
use crate::value::{Kind, Value};

/// Maximum length of the result of `transform` as JSON, the same as in AWS IoT.
const TRANSFORMED_LEN_MAX_BYTES: usize = 128 * 1024;

/// Concatenates arrays or texts. As in AWS IoT's reference, a single argument is returned
/// unchanged.
pub(super) fn concat(
    arguments: &[Cow<'_, Value>],
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    if arguments.iter().any(|argument| argument.is_undefined()) {
        return Err("Undefined cannot be joined".into());
    }
    match arguments {
        [] => return Err("there is nothing to join".into()),
        [only] => return Ok(context.own(Cow::Borrowed(&**only))?),
        _ => {}
    }
    for argument in arguments {
        context.spend_bytes(argument.weight())?;
    }
    let has = |kind: Kind| arguments.iter().any(|argument| argument.kind() == kind);
    if has(Kind::Array) {
        let mut joined = Vec::new();
        for argument in arguments {
            match &**argument {
                Value::Array(elements) => joined.extend(elements.iter().cloned()),
                other => joined.push(other.clone()),
            }
        }
        return Ok(context.check_depth(Value::Array(joined))?);
    }
    if !has(Kind::String) {
        return Err("none of the arguments is a text or an array".into());
    }
    let mut joined = String::new();
    for argument in arguments {
        let text = to_text(argument).ok_or_else(|| {
            Fault::from(format!("{} cannot be converted to a text", argument.kind()))
        })?;
        joined.push_str(&text);
    }
    Ok(Value::String(joined))
}

pub(super) fn get(
    collection: &Value,
    key: &Value,
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    let found = match collection {
        Value::Array(elements) => to_index(key).and_then(|index| elements.get(index)),
        Value::Object(object) => key.as_str().and_then(|name| object.get(name)),
        Value::String(text) => {
            context.spend_bytes(text.len())?;
            let character = to_index(key).and_then(|index| text.chars().nth(index));
            return character
                .map(|character| Value::String(character.to_string()))
                .ok_or_else(|| format!("the text has no character at {}", shown(key)).into());
        }
        other => return Err(format!("{} has no members", other.kind()).into()),
    };
    match found {
        Some(found) => Ok(context.own(Cow::Borrowed(found))?),
        None => Err(format!("it does not contain {}", shown(key)).into()),
    }
}

/// The first argument, or the second if the first has no value. Implements `get_or_default`, whose
/// default is optional, and `nanvl`: a value that is not a number is Undefined here.
pub(super) fn first_or_second(
    arguments: &[Cow<'_, Value>],
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    let chosen = match &*arguments[0] {
        Value::Null | Value::Undefined => arguments.get(1),
        _ => arguments.first(),
    };
    match chosen {
        Some(chosen) => Ok(context.own(Cow::Borrowed(&**chosen))?),
        None => Err("there is no value, and no default".into()),
    }
}

/// Adds the members of an object to every object of an array.
pub(super) fn transform(
    members: &Value,
    array: &Value,
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    let (Value::Object(members), Value::Array(elements)) = (members, array) else {
        return Err(format!(
            "it needs an object and an array, not {} and {}",
            members.kind(),
            array.kind()
        )
        .into());
    };
    let mut transformed = Vec::with_capacity(elements.len());
    let mut len_bytes = 0;
    for element in elements {
        let Value::Object(element) = element else {
            return Err(format!("an element of the array is {}", element.kind()).into());
        };
        let mut object: Object = element.clone();
        for (name, value) in members.iter() {
            object.insert(name, value.clone());
        }
        let object = Value::Object(object);
        context.spend_bytes(object.weight())?;
        len_bytes += object.weight();
        if len_bytes > TRANSFORMED_LEN_MAX_BYTES {
            return Err("the result is too large".into());
        }
        transformed.push(object);
    }
    Ok(context.check_depth(Value::Array(transformed))?)
}
