//! Checks a decoder document, and names the place of the first error.

use std::collections::{BTreeMap, BTreeSet};

use homeport_item::Decimal;

use super::decode::{Decoder, EventTypeSource, Field, Meaning, Texts};
use super::document::{BitsDocument, DecoderDocument, Endian, FieldDocument, FlagsAs, NumberType};
use super::number::NumberPlace;
use crate::chargers::types::{DATA_MEMBERS_MAX, EventType, NAME_LEN_MAX, is_name};
use crate::chargers::uplinks::PAYLOAD_BYTES_MAX;
use crate::text::PRINTABLE;

/// Fields of a decoder.
pub const FIELDS_MAX: usize = 64;
/// Values of one field.
pub const VALUES_MAX: usize = 256;
/// Characters of the text of a value.
pub const VALUE_CHARS_MAX: usize = 64;
/// Characters of a unit.
pub const UNIT_CHARS_MAX: usize = 16;
/// Characters of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 256;
/// The type of events if the decoder does not determine it.
pub const EVENT_TYPE_DEFAULT: &str = "telemetry";
const NAME_EXPECTED: &str = "1 to 64 characters of a-z, A-Z, 0-9, '_', '-' and '.'";
/// The key of the text for all other numbers.
const OTHER: &str = "*";

/// Why a decoder is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct InvalidDecoder {
    /// Such as `fields[2].bits`.
    pub place: String,
    pub reason: String,
}

/// The member of the document that is being checked.
#[derive(Clone, Copy)]
struct Place<'a>(&'a str);

impl Place<'_> {
    fn invalid(self, member: &str, reason: impl Into<String>) -> InvalidDecoder {
        let place = match self.0 {
            "" => member.to_owned(),
            place => format!("{place}.{member}"),
        };
        InvalidDecoder {
            place,
            reason: reason.into(),
        }
    }
}

impl Decoder {
    /// Checks a document.
    ///
    /// # Errors
    /// When a member is invalid.
    pub fn new(document: &DecoderDocument) -> Result<Self, InvalidDecoder> {
        let root = Place("");
        if let Some(description) = &document.description {
            check_text(root, "description", description, DESCRIPTION_CHARS_MAX)?;
        }
        if document.fields.len() > FIELDS_MAX {
            return Err(root.invalid("fields", format!("at most {FIELDS_MAX} fields")));
        }
        let mut names = BTreeSet::new();
        let mut fields = Vec::with_capacity(document.fields.len());
        for (at, field) in document.fields.iter().enumerate() {
            let place = format!("fields[{at}]");
            fields.push(compile_field(
                Place(&place),
                field,
                document.endian,
                &mut names,
            )?);
        }
        if names.len() > DATA_MEMBERS_MAX {
            let reason = format!("at most {DATA_MEMBERS_MAX} members with those of flags");
            return Err(root.invalid("fields", reason));
        }
        Ok(Self {
            payload: document.payload,
            event_type: event_type(document)?,
            fields,
        })
    }
}

fn event_type(document: &DecoderDocument) -> Result<EventTypeSource, InvalidDecoder> {
    let root = Place("");
    let parse = |text: &str| text.parse::<EventType>().map_err(|error| error.to_string());
    let Some(code) = &document.event_type_from else {
        let fixed = document.event_type.as_deref().unwrap_or(EVENT_TYPE_DEFAULT);
        let fixed = parse(fixed).map_err(|reason| root.invalid("event_type", reason))?;
        return Ok(EventTypeSource::Fixed(fixed));
    };
    if document.event_type.is_some() {
        let reason = "give either event_type or event_type_from, not both";
        return Err(root.invalid("event_type_from", reason));
    }
    let place = Place("event_type_from");
    let number = number_place(
        place,
        code.offset,
        code.number_type,
        code.endian.unwrap_or(document.endian),
        code.bits,
    )?;
    let texts = texts(place, &number, &code.values, parse)?;
    Ok(EventTypeSource::Code(number, texts))
}

fn compile_field<'a>(
    place: Place<'_>,
    field: &'a FieldDocument,
    endian: Endian,
    names: &mut BTreeSet<&'a str>,
) -> Result<Field, InvalidDecoder> {
    let number = number_place(
        place,
        field.offset,
        field.number_type,
        field.endian.unwrap_or(endian),
        field.bits,
    )?;
    if let Some(unit) = &field.unit {
        check_text(place, "unit", unit, UNIT_CHARS_MAX)?;
    }
    if !is_name(&field.name, NAME_LEN_MAX) {
        return Err(place.invalid("name", NAME_EXPECTED));
    }
    let is_scaled = field.scale.is_some() || field.add.is_some();
    if is_scaled && (field.values.is_some() || field.flags.is_some()) {
        let reason = "only numbers without values and flags are scaled";
        return Err(place.invalid("scale", reason));
    }
    if field.flags_as.is_some() && field.flags.is_none() {
        return Err(place.invalid("flags_as", "only for fields with flags"));
    }
    let mut member = |member: &str, name: &'a str| {
        if !is_name(name, NAME_LEN_MAX) {
            return Err(place.invalid(member, NAME_EXPECTED));
        }
        match names.insert(name) {
            true => Ok(()),
            false => Err(place.invalid(member, format!("{name:?} is the name of another member"))),
        }
    };
    let meaning = match (&field.values, &field.flags) {
        (Some(_), Some(_)) => {
            return Err(place.invalid("flags", "give either values or flags, not both"));
        }
        (Some(values), None) => {
            member("name", &field.name)?;
            let text = |text: &str| match is_text(text, VALUE_CHARS_MAX) {
                true => Ok(text.to_owned()),
                false => Err(format!(
                    "texts have 1 to {VALUE_CHARS_MAX} printable characters"
                )),
            };
            Meaning::Text(texts(place, &number, values, text)?)
        }
        (None, Some(flags)) => {
            let bits = flag_bits(place, &number, flags)?;
            match field.flags_as.unwrap_or_default() {
                FlagsAs::Booleans => {
                    for name in flags.values() {
                        member("flags", name)?;
                    }
                    Meaning::Booleans(bits)
                }
                FlagsAs::List => {
                    member("name", &field.name)?;
                    if flags.values().any(|name| !is_text(name, VALUE_CHARS_MAX)) {
                        let reason =
                            format!("names have 1 to {VALUE_CHARS_MAX} printable characters");
                        return Err(place.invalid("flags", reason));
                    }
                    Meaning::List(bits)
                }
            }
        }
        (None, None) => {
            member("name", &field.name)?;
            Meaning::Number {
                scale: decimal(place, "scale", field.scale)?,
                add: decimal(place, "add", field.add)?,
            }
        }
    };
    Ok(Field {
        name: field.name.clone(),
        place: number,
        meaning,
        is_optional: field.optional,
    })
}

fn number_place(
    place: Place<'_>,
    offset: usize,
    number_type: NumberType,
    endian: Endian,
    bits: Option<BitsDocument>,
) -> Result<NumberPlace, InvalidDecoder> {
    let number = NumberPlace {
        offset,
        number_type,
        endian,
        bits,
    };
    if number.end() > PAYLOAD_BYTES_MAX {
        let reason = format!("payloads have at most {PAYLOAD_BYTES_MAX} bytes");
        return Err(place.invalid("offset", reason));
    }
    if let Some(bits) = bits {
        if number_type.is_float() {
            return Err(place.invalid("bits", "floats have no bits; use a whole number"));
        }
        let end = bits.first.checked_add(bits.length);
        let fits = end.is_some_and(|end| end <= number_type.width());
        if bits.length == 0 || !fits {
            let width = number_type.width();
            let reason =
                format!("first and length must name 1 to {width} of the {width} bits of the type");
            return Err(place.invalid("bits", reason));
        }
    }
    Ok(number)
}

fn texts<T>(
    place: Place<'_>,
    number: &NumberPlace,
    values: &BTreeMap<String, String>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Texts<T>, InvalidDecoder> {
    let invalid = |reason: String| place.invalid("values", reason);
    if number.number_type.is_float() {
        return Err(invalid(
            "floats have no values; use a whole number".to_owned(),
        ));
    }
    if values.is_empty() || values.len() > VALUES_MAX {
        return Err(invalid(format!("1 to {VALUES_MAX} values")));
    }
    let (smallest, largest) = number.range();
    let mut texts = Texts {
        known: BTreeMap::new(),
        other: None,
    };
    for (code, text) in values {
        let text = parse(text).map_err(|reason| invalid(format!("{code:?}: {reason}")))?;
        if code == OTHER {
            texts.other = Some(text);
            continue;
        }
        let known = code.parse().ok();
        let known = known.filter(|known| (smallest..=largest).contains(known));
        let known = known.ok_or_else(|| {
            invalid(format!(
                "{code:?} must be {OTHER:?} or a whole number from {smallest} to {largest}"
            ))
        })?;
        if texts.known.insert(known, text).is_some() {
            return Err(invalid(format!("{known} is given twice")));
        }
    }
    Ok(texts)
}

fn flag_bits(
    place: Place<'_>,
    number: &NumberPlace,
    flags: &BTreeMap<String, String>,
) -> Result<Vec<(u32, String)>, InvalidDecoder> {
    let invalid = |reason: String| place.invalid("flags", reason);
    if number.number_type.is_float() || number.number_type.is_signed() {
        return Err(invalid("only unsigned numbers have flags".to_owned()));
    }
    if flags.is_empty() {
        return Err(invalid("at least one flag".to_owned()));
    }
    let width = number.width();
    let mut bits = BTreeMap::new();
    for (bit, name) in flags {
        let known = bit.parse().ok().filter(|known| *known < width);
        let known = known
            .ok_or_else(|| invalid(format!("{bit:?} must be a bit from 0 to {}", width - 1)))?;
        if bits.insert(known, name.clone()).is_some() {
            return Err(invalid(format!("bit {known} is given twice")));
        }
    }
    Ok(bits.into_iter().collect())
}

fn decimal(
    place: Place<'_>,
    member: &str,
    number: Option<f64>,
) -> Result<Option<Decimal>, InvalidDecoder> {
    let decimal =
        |number| Decimal::from_f64(number).ok_or_else(|| place.invalid(member, "a number"));
    number.map(decimal).transpose()
}

fn check_text(
    place: Place<'_>,
    member: &str,
    text: &str,
    chars_max: usize,
) -> Result<(), InvalidDecoder> {
    match is_text(text, chars_max) {
        true => Ok(()),
        false => Err(place.invalid(member, format!("1 to {chars_max} printable characters"))),
    }
}

fn is_text(text: &str, chars_max: usize) -> bool {
    (1..=chars_max).contains(&text.chars().count()) && (PRINTABLE.accepts)(text)
}
