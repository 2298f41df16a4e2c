//! The operators on values of every type.

use std::cmp::Ordering;

use crate::evaluate::convert::{to_boolean, to_number, to_text};
use crate::evaluate::{Context, Fault};
use crate::parse::tree::{Arithmetic, CastType, Comparison};
use crate::value::{Kind, Value};
use homeport_item::{Decimal, DecimalError};

pub(crate) fn compare(operator: Comparison, left: &Value, right: &Value) -> Result<Value, Fault> {
    if left.is_undefined() || right.is_undefined() {
        return Err("a comparison with Undefined".into());
    }
    let ordered = |holds: fn(Ordering) -> bool| match (to_number(left), to_number(right)) {
        (Some(left), Some(right)) => Ok(holds(left.cmp(&right))),
        _ => Err(Fault::from(format!(
            "{} and {} cannot be ordered: both must be numbers",
            described(left),
            described(right)
        ))),
    };
    Ok(Value::Boolean(match operator {
        Comparison::Equal => left.equals(right),
        Comparison::NotEqual => !left.equals(right),
        Comparison::Less => ordered(Ordering::is_lt)?,
        Comparison::LessOrEqual => ordered(Ordering::is_le)?,
        Comparison::Greater => ordered(Ordering::is_gt)?,
        Comparison::GreaterOrEqual => ordered(Ordering::is_ge)?,
    }))
}

/// Describes a value in messages: texts by their content, others by their type.
fn described(value: &Value) -> String {
    match value {
        Value::String(_) => format!("the text {}", crate::evaluate::shown(value)),
        other => other.kind().to_string(),
    }
}

pub(crate) fn calculate(
    operator: Arithmetic,
    left: &Value,
    right: &Value,
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    if operator == Arithmetic::Add && (left.kind() == Kind::String || right.kind() == Kind::String)
    {
        return join(left, right, context);
    }
    // Numeric texts are numbers for every operator except +, and then the result is a Decimal.
    let whole = matches!((left, right), (Value::Int(_), Value::Int(_)));
    let (Some(left_number), Some(right_number)) = (to_number(left), to_number(right)) else {
        return Err(format!(
            "{} and {} cannot be calculated with",
            described(left),
            described(right)
        )
        .into());
    };
    let result = match operator {
        Arithmetic::Add => left_number.add(&right_number),
        Arithmetic::Subtract => left_number.subtract(&right_number),
        Arithmetic::Multiply => left_number.multiply(&right_number),
        Arithmetic::Divide if whole => left_number.divide_whole(&right_number),
        Arithmetic::Divide => left_number.divide(&right_number),
        Arithmetic::Remainder => left_number.remainder(&right_number),
    };
    let number = result.map_err(out_of_range)?;
    Ok(if whole {
        Value::Int(number)
    } else {
        Value::Decimal(number)
    })
}

fn out_of_range(error: DecimalError) -> Fault {
    match error {
        DecimalError::DivisionByZero => "a division by zero".into(),
        DecimalError::OutOfRange | DecimalError::NotANumber => "the result is out of range".into(),
    }
}

fn join(left: &Value, right: &Value, context: &mut Context<'_>) -> Result<Value, Fault> {
    let (Some(left_text), Some(right_text)) = (to_text(left), to_text(right)) else {
        let kind = match to_text(left) {
            None => left.kind(),
            Some(_) => right.kind(),
        };
        return Err(format!("{kind} cannot be converted to a text").into());
    };
    context.spend_bytes(left_text.len() + right_text.len())?;
    Ok(Value::String(format!("{left_text}{right_text}")))
}

pub(crate) fn negative(operand: &Value) -> Result<Value, Fault> {
    match operand {
        Value::Int(number) => Ok(Value::Int(number.negated())),
        other => match to_number(other) {
            Some(number) => Ok(Value::Decimal(number.negated())),
            None => Err(format!("{} cannot be negated", described(other)).into()),
        },
    }
}

/// Whether an array contains an element equal to the needle.
///
/// DIFFERENCE: AWS IoT's reference does not mention IN and EXISTS, but existing rules use them.
pub(crate) fn contains(needle: &Value, haystack: &Value) -> Result<bool, Fault> {
    match haystack {
        _ if needle.is_undefined() => Err("IN with Undefined".into()),
        Value::Array(elements) => Ok(elements.iter().any(|element| element.equals(needle))),
        other => Err(format!("IN needs an array, not {}", other.kind()).into()),
    }
}

pub(crate) fn cast(value: &Value, target: CastType) -> Result<Value, Fault> {
    let cast = match target {
        CastType::Text => to_text(value).map(|text| Value::String(text.into_owned())),
        CastType::Int => number_of(value).map(|number| Value::Int(number.floor())),
        // An integer becomes an Int in this version of the language.
        CastType::Decimal => number_of(value).map(Value::number),
        CastType::Double => number_of(value)
            .and_then(|number| Decimal::from_f64(number.to_f64()))
            .map(Value::Decimal),
        CastType::Boolean => match value {
            Value::Int(number) | Value::Decimal(number) => Some(Value::Boolean(!number.is_zero())),
            other => to_boolean(other).map(Value::Boolean),
        },
    };
    cast.ok_or_else(|| format!("{} cannot be cast to this type", described(value)).into())
}

/// The standard conversion, and true and false become one and zero.
fn number_of(value: &Value) -> Option<Decimal> {
    match value {
        Value::Boolean(truth) => Some(Decimal::from(i64::from(*truth))),
        other => to_number(other),
    }
}
