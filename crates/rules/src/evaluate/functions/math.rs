//! Numeric functions. Rounding and remainders are exact; the others use binary floating-point
//! numbers, as in AWS IoT.

use std::borrow::Cow;

use super::Function;
use crate::evaluate::convert::to_number;
use crate::evaluate::{Context, Fault};
use crate::value::Value;
use homeport_item::Decimal;

/// Maximum number of decimal places that `trunc` keeps.
const TRUNC_PLACES_MAX: i64 = 34;

fn number(value: &Value) -> Result<Decimal, Fault> {
    to_number(value)
        .ok_or_else(|| format!("{} is not a number", crate::evaluate::shown(value)).into())
}

/// The argument rounded down to an integer.
fn whole(value: &Value) -> Result<Decimal, Fault> {
    number(value).map(|number| number.floor())
}

pub(super) fn rounding(function: Function, arguments: &[Cow<'_, Value>]) -> Result<Value, Fault> {
    let argument = &*arguments[0];
    let value = number(argument)?;
    Ok(match function {
        Function::Abs => match argument {
            Value::Int(_) => Value::Int(value.abs()),
            _ => Value::Decimal(value.abs()),
        },
        Function::Ceil => Value::Int(value.ceil()),
        Function::Floor => Value::Int(value.floor()),
        // Halves round away from zero: AWS IoT's examples give 2 for 1.5 and -2 for -1.5.
        Function::Round => Value::Int(value.round()),
        Function::Sign if value.is_zero() => Value::from(0),
        Function::Sign if value.is_negative() => Value::from(-1),
        Function::Sign => Value::from(1),
        _ => {
            let places = whole(&arguments[1])?
                .max(Decimal::ZERO)
                .min(Decimal::from(TRUNC_PLACES_MAX));
            let places = places
                .to_i128()
                .and_then(|places| u32::try_from(places).ok());
            Value::number(value.truncate(places.unwrap_or(0)))
        }
    })
}

pub(super) fn real(function: Function, argument: &Value) -> Result<Value, Fault> {
    let value = number(argument)?.to_f64();
    real_result(match function {
        Function::Acos => value.acos(),
        Function::Asin => value.asin(),
        Function::Atan => value.atan(),
        Function::Cos => value.cos(),
        Function::Cosh => value.cosh(),
        Function::Exp => value.exp(),
        Function::Ln => value.ln(),
        Function::Log => value.log10(),
        Function::Sin => value.sin(),
        Function::Sinh => value.sinh(),
        Function::Sqrt => value.sqrt(),
        Function::Tan => value.tan(),
        _ => value.tanh(),
    })
}

pub(super) fn real_pair(function: Function, left: &Value, right: &Value) -> Result<Value, Fault> {
    let (left, right) = (number(left)?.to_f64(), number(right)?.to_f64());
    real_result(match function {
        Function::Power => left.powf(right),
        _ => left.atan2(right),
    })
}

fn real_result(value: f64) -> Result<Value, Fault> {
    Decimal::from_f64(value)
        .map(Value::Decimal)
        .ok_or_else(|| "the result is not a real number".into())
}

pub(super) fn remainder(left: &Value, right: &Value) -> Result<Value, Fault> {
    let whole = matches!((left, right), (Value::Int(_), Value::Int(_)));
    let result = number(left)?.remainder(&number(right)?);
    let result = result.map_err(|error| Fault::from(error.to_string()))?;
    Ok(if whole {
        Value::Int(result)
    } else {
        Value::Decimal(result)
    })
}

/// Bitwise operations in two's complement, without a fixed width.
///
/// DIFFERENCE: AWS IoT's reference gives 2 for `bitnot(13)`, which is true only for four bits. Here
/// it is -14, as in other languages with such integers.
pub(super) fn bits(function: Function, arguments: &[Cow<'_, Value>]) -> Result<Value, Fault> {
    let operand = |value: &Value| {
        whole(value)?
            .to_i128()
            .ok_or_else(|| Fault::from("the number is too large for its bits"))
    };
    let first = operand(&arguments[0])?;
    let result = match function {
        Function::BitAnd => first & operand(&arguments[1])?,
        Function::BitOr => first | operand(&arguments[1])?,
        Function::BitXor => first ^ operand(&arguments[1])?,
        _ => !first,
    };
    Decimal::try_from(result)
        .map(Value::Int)
        .map_err(|error| error.to_string().into())
}

/// A uniform number between zero and one, from 53 random bits.
pub(super) fn random(context: &mut Context<'_>) -> Value {
    const BITS: u32 = f64::MANTISSA_DIGITS;
    let mut bytes = [0u8; 8];
    context.randomness.fill(&mut bytes);
    let bits = u64::from_le_bytes(bytes) >> (u64::BITS - BITS);
    let value = bits as f64 / (1u64 << BITS) as f64;
    Value::Decimal(Decimal::from_f64(value).unwrap_or(Decimal::ZERO))
}
