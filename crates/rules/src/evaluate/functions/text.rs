//! Text functions. Positions and lengths are counted in characters.
//!
//! DIFFERENCE: AWS IoT counts UTF-16 units, where an emoji counts as two; here it counts as one.

use std::borrow::Cow;

use super::Function;
use crate::evaluate::convert::{to_number, to_text, to_whole};
use crate::evaluate::{Context, Fault, shown};
use crate::value::Value;
use homeport_item::Decimal;

/// Maximum number of spaces that `lpad` and `rpad` add.
const PADDING_MAX: i64 = 1000;

/// Converts the argument to a text by the standard conversion.
pub(super) fn text<'a>(value: &'a Value, context: &mut Context<'_>) -> Result<Cow<'a, str>, Fault> {
    context.spend_bytes(value.weight())?;
    to_text(value).ok_or_else(|| format!("{} cannot be converted to a text", value.kind()).into())
}

pub(super) fn call(
    function: Function,
    arguments: &[Cow<'_, Value>],
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    if function == Function::Chr {
        return chr(&arguments[0]);
    }
    let first = text(&arguments[0], context)?;
    Ok(match function {
        Function::Length => count(first.chars().count()),
        Function::NumBytes => count(first.len()),
        Function::Lower => Value::String(first.to_lowercase()),
        Function::Upper => Value::String(first.to_uppercase()),
        Function::Trim => Value::from(first.trim_matches(is_space)),
        Function::Ltrim => Value::from(first.trim_start_matches(is_space)),
        Function::Rtrim => Value::from(first.trim_end_matches(is_space)),
        Function::Lpad => Value::String(format!("{}{first}", padding(&arguments[1])?)),
        Function::Rpad => Value::String(format!("{first}{}", padding(&arguments[1])?)),
        Function::StartsWith => Value::Boolean(first.starts_with(&*text(&arguments[1], context)?)),
        Function::EndsWith => Value::Boolean(first.ends_with(&*text(&arguments[1], context)?)),
        Function::IndexOf => {
            let wanted = text(&arguments[1], context)?;
            match first.find(&*wanted) {
                Some(at) => count(first[..at].chars().count()),
                None => Value::from(-1),
            }
        }
        Function::Replace => {
            let wanted = text(&arguments[1], context)?;
            let replacement = text(&arguments[2], context)?;
            let times = first.matches(&*wanted).count();
            context.spend_bytes(first.len() + times.saturating_mul(replacement.len()))?;
            Value::String(first.replace(&*wanted, &replacement))
        }
        _ => substring(&first, &arguments[1..])?,
    })
}

fn count(count: usize) -> Value {
    Value::from(i64::try_from(count).unwrap_or(i64::MAX))
}

fn is_space(character: char) -> bool {
    character <= ' '
}

fn chr(argument: &Value) -> Result<Value, Fault> {
    let code = to_number(argument)
        .and_then(|number| number.floor().to_i128())
        .and_then(|code| u8::try_from(code).ok())
        .filter(u8::is_ascii);
    match code {
        Some(code) => Ok(Value::String(char::from(code).to_string())),
        None => Err(format!("{} is not an ASCII code", shown(argument)).into()),
    }
}

fn padding(argument: &Value) -> Result<String, Fault> {
    let Some(number) = to_number(argument) else {
        return Err(format!("{} is not a valid number of spaces", shown(argument)).into());
    };
    let spaces = number
        .floor()
        .clamp(Decimal::ZERO, Decimal::from(PADDING_MAX))
        .to_i128()
        .and_then(|spaces| usize::try_from(spaces).ok());
    Ok(" ".repeat(spaces.unwrap_or(0)))
}

/// The substring between two indexes, or to the end. Indexes outside of the text are clamped.
fn substring(text: &str, indices: &[Cow<'_, Value>]) -> Result<Value, Fault> {
    let len = text.chars().count();
    let last = Decimal::from(i64::try_from(len).unwrap_or(i64::MAX));
    let index = |value: &Value| {
        to_whole(value)
            .map(|index| index.clamp(Decimal::ZERO, last))
            .and_then(|index| usize::try_from(index.to_i128()?).ok())
            .ok_or_else(|| Fault::from(format!("{} is not an index", shown(value))))
    };
    let from = index(&indices[0])?;
    let to = match indices.get(1) {
        Some(to) => index(to)?,
        None => len,
    };
    Ok(Value::String(
        text.chars()
            .skip(from)
            .take(to.saturating_sub(from))
            .collect(),
    ))
}
