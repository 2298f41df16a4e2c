//! Attribute values of a request, or the problem that DynamoDB reports with them.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::item::ItemError;
use homeport_item::value::DEPTH_MAX;
use homeport_item::{Item, Name, Number, Set, Value, ValueKind};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::containers::{
    List, Named, UNEXPECTED_ELEMENT, UNEXPECTED_FIELD, not_a_list, refuse_scalars,
};
use super::problem::{Problem, listed, sorted_to_repetition};
use super::scalars::{Flag, Text};

/// A value, or the problem with it.
#[derive(Debug, Clone)]
pub(crate) struct Attribute(pub(crate) Result<Value, Problem>);

/// Named values, or the first problem with them.
#[derive(Debug, Clone)]
pub(crate) struct Attributes(pub(crate) Result<Item, Problem>);

thread_local! {
    /// The number of nested values that are being read. serde passes no state from a value to its elements.
    static LEVELS: Cell<usize> = const { Cell::new(0) };
}

/// One more level of nesting, as long as it is held.
struct Level;

impl Level {
    fn enter() -> Self {
        LEVELS.set(LEVELS.get() + 1);
        Self
    }

    /// Whether the current value is nested too deeply.
    fn is_beyond_limit() -> bool {
        LEVELS.get() > DEPTH_MAX + 1
    }

    fn is_outermost() -> bool {
        LEVELS.get() == 0
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVELS.set(LEVELS.get() - 1);
    }
}

impl Named for Attribute {
    const NAME: &'static str = "AttributeValue";
}

impl Named for Attributes {
    const NAME: &'static str = "java.util.Map";
}

impl<'de> Deserialize<'de> for Attribute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AttributeVisitor).map(Self)
    }
}

struct AttributeVisitor;

impl<'de> Visitor<'de> for AttributeVisitor {
    type Value = Result<Value, Problem>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an attribute value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let _level = Level::enter();
        if Level::is_beyond_limit() {
            // Skipped without recursion, so that no depth can overflow the stack.
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Err(Problem::too_deep()));
        }
        let mut found: Option<Self::Value> = None;
        let mut several = false;
        while let Some(Text(name)) = map.next_key()? {
            let Some(kind) = ValueKind::from_name(&name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let Some(value) = content(kind, &mut map)? else {
                continue;
            };
            several |= found.is_some();
            if !matches!(found, Some(Err(_))) {
                found = Some(value);
            }
        }
        Ok(match found {
            None => Err(Problem::wrong_type_count(
                "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
            )),
            Some(Ok(_)) if several => Err(Problem::wrong_type_count(
                "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
            )),
            Some(value) => value,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(not_a_list(Attribute::NAME))
    }

    refuse_scalars!(Self::Value, |_visitor| UNEXPECTED_ELEMENT);
}

/// The value for the name of a type; `None` if it is null.
fn content<'de, A: MapAccess<'de>>(
    kind: ValueKind,
    map: &mut A,
) -> Result<Option<Result<Value, Problem>>, A::Error> {
    Ok(match kind {
        ValueKind::S => map
            .next_value::<Option<Text<'de>>>()?
            .map(|text| Ok(Value::S(text.0.into_owned()))),
        ValueKind::N => map
            .next_value::<Option<Text<'de>>>()?
            .map(|text| number(text.as_str()).map(Value::N)),
        ValueKind::B => map
            .next_value::<Option<Bytes>>()?
            .map(|bytes| Ok(Value::B(bytes.0))),
        ValueKind::Bool => map
            .next_value::<Option<Flag>>()?
            .map(|flag| Ok(Value::Bool(flag.0))),
        ValueKind::Null => map.next_value::<Option<Flag>>()?.map(|flag| {
            flag.0
                .then_some(Value::Null)
                .ok_or_else(|| invalid("Null attribute value types must have the value of true"))
        }),
        ValueKind::M => map
            .next_value::<Option<Attributes>>()?
            .map(|attributes| Ok(Value::M(attributes.0?.into_attributes()))),
        ValueKind::L => map
            .next_value::<Option<List<Attribute>>>()?
            .map(|list| list.0.into_iter().map(|attribute| attribute.0).collect())
            .map(|list: Result<Vec<Value>, Problem>| Ok(Value::L(list?))),
        ValueKind::Ss => map.next_value::<Option<List<Text<'de>>>>()?.map(string_set),
        ValueKind::Ns => map.next_value::<Option<List<Text<'de>>>>()?.map(number_set),
        ValueKind::Bs => map.next_value::<Option<List<Bytes>>>()?.map(binary_set),
    })
}

fn invalid_text(text: impl fmt::Display) -> String {
    format!("One or more parameter values were invalid: {text}")
}

fn invalid(text: impl fmt::Display) -> Problem {
    Problem::new(invalid_text(text))
}

fn number(text: &str) -> Result<Number, Problem> {
    text.parse::<Number>()
        .map_err(|error| Problem::number(text, &error))
}

fn string_set(members: List<Text<'_>>) -> Result<Value, Problem> {
    if members.0.is_empty() {
        return Err(invalid("An string set  may not be empty"));
    }
    let members: Vec<String> = members
        .0
        .into_iter()
        .map(|member| member.0.into_owned())
        .collect();
    if has_duplicates(&members) {
        let refused = |listed: String| {
            invalid_text(format_args!(
                "Input collection [{listed}] contains duplicates."
            ))
        };
        return Err(Problem::worded(
            refused(listed(quoted(sorted_to_repetition(&members)), ", ")),
            refused(listed(&members, ", ")),
        ));
    }
    Set::new(members).map(Value::Ss).map_err(invalid)
}

fn number_set(members: List<Text<'_>>) -> Result<Value, Problem> {
    if members.0.is_empty() {
        return Err(invalid("An number set  may not be empty"));
    }
    let members = members
        .0
        .iter()
        .map(|member| number(member.as_str()))
        .collect::<Result<Vec<_>, _>>()?;
    Set::new(members).map(Value::Ns).map_err(|error| {
        Problem::worded(invalid_text(error), error.to_string().trim_end_matches('.'))
    })
}

fn binary_set(members: List<Bytes>) -> Result<Value, Problem> {
    if members.0.is_empty() {
        return Err(invalid("Binary sets should not be empty"));
    }
    let members: Vec<Vec<u8>> = members.0.into_iter().map(|member| member.0).collect();
    if has_duplicates(&members) {
        let refused = |listed: String| {
            invalid_text(format_args!(
                "Input collection [{listed}]of type BS contains duplicates."
            ))
        };
        let encode = |member: &Vec<u8>| STANDARD.encode(member);
        let sorted = sorted_to_repetition(&members).into_iter().map(encode);
        return Err(Problem::worded(
            refused(listed(quoted(sorted), ",")),
            refused(listed(members.iter().map(encode), ", ")),
        ));
    }
    Set::new(members).map(Value::Bs).map_err(invalid)
}

fn quoted<T: fmt::Display>(members: impl IntoIterator<Item = T>) -> impl Iterator<Item = String> {
    members.into_iter().map(|member| format!("\"{member}\""))
}

fn has_duplicates<T: Ord>(members: &[T]) -> bool {
    let mut sorted: Vec<&T> = members.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AttributesVisitor).map(Self)
    }
}

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = Result<Item, Problem>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map of attribute values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        // Collected first: they come in any order, and inserting very many one by one would be slow.
        let mut attributes = Vec::new();
        let mut problem: Option<Problem> = None;
        let mut unnamed = false;
        while let Some(Text(name)) = map.next_key()? {
            unnamed |= name.is_empty();
            match map.next_value::<Option<Attribute>>()? {
                None => {}
                Some(Attribute(Ok(value))) => {
                    attributes.push((Name::from(name), value));
                }
                Some(Attribute(Err(found))) => {
                    problem.get_or_insert(found);
                }
            }
        }
        Ok(match problem {
            None => Ok(attributes.into_iter().collect()),
            // An empty name at the top level is reported before the depth of other attributes.
            Some(problem) if problem.is_too_deep() && unnamed && Level::is_outermost() => {
                Err(Problem::new(ItemError::EmptyName.to_string()))
            }
            Some(problem) => Err(problem),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(A::Error::custom(
            "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>",
        ))
    }

    refuse_scalars!(Self::Value, |_visitor| UNEXPECTED_FIELD);
}

/// Bytes in base64.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BytesVisitor).map(Self)
    }
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("bytes in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u8>, E> {
        if !text.len().is_multiple_of(4) {
            return Err(E::custom(format_args!(
                "Base64 encoded length is expected a multiple of 4 bytes but found: {}",
                text.len()
            )));
        }
        STANDARD.decode(text).map_err(|error| match error {
            base64::DecodeError::InvalidByte(_, byte) if byte != b'=' => E::custom(format_args!(
                "Invalid Base64 character: '{}'",
                Cow::from(char::from(byte).to_string())
            )),
            _ => E::custom("Invalid last non-pad Base64 character dectected"),
        })
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Vec<u8>, E> {
        Err(not_bytes())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Vec<u8>, E> {
        Err(not_bytes())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Vec<u8>, E> {
        Err(not_bytes())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Vec<u8>, E> {
        Err(not_bytes())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Vec<u8>, A::Error> {
        Err(A::Error::custom(
            "Unrecognized collection type class java.nio.ByteBuffer",
        ))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Vec<u8>, A::Error> {
        Err(A::Error::custom(
            "Start of structure or map found where not expected",
        ))
    }
}

fn not_bytes<E: Error>() -> E {
    E::custom("only base-64-encoded strings are convertible to bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_get_dynamodb_texts() {
        let prefix = "One or more parameter values were invalid: ";
        for (json, text) in [
            ("{}", "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes".to_owned()),
            (r#"{"X":1}"#, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes".to_owned()),
            (r#"{"S":null}"#, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes".to_owned()),
            (r#"{"S":"a","N":"1"}"#, "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes".to_owned()),
            (r#"{"N":"x"}"#, "The parameter cannot be converted to a numeric value: x".to_owned()),
            (r#"{"N":""}"#, "The parameter cannot be converted to a numeric value: ".to_owned()),
            (r#"{"N":"1e126"}"#, "Number overflow. Attempting to store a number with magnitude larger than supported range".to_owned()),
            (r#"{"NULL":false}"#, format!("{prefix}Null attribute value types must have the value of true")),
            (r#"{"SS":[]}"#, format!("{prefix}An string set  may not be empty")),
            (r#"{"NS":[]}"#, format!("{prefix}An number set  may not be empty")),
            (r#"{"BS":[]}"#, format!("{prefix}Binary sets should not be empty")),
            (r#"{"SS":["a","a"]}"#, format!("{prefix}Input collection [\"a\", \"a\"] contains duplicates.")),
            (r#"{"NS":["1","1.0"]}"#, format!("{prefix}Input collection contains duplicates.")),
            (r#"{"BS":["YQ==","YQ=="]}"#, format!("{prefix}Input collection [\"YQ==\",\"YQ==\"]of type BS contains duplicates.")),
            (r#"{"M":{"a":{"L":[{"S":"x"},{"N":"y"}]}}}"#, "The parameter cannot be converted to a numeric value: y".to_owned()),
        ] {
            let attribute: Attribute = serde_json::from_str(json).expect("well-formed");
            assert_eq!(attribute.0.expect_err(json).newer(), text, "{json}");
        }
    }

    #[test]
    fn depth_is_checked_in_text_order() {
        let deep = |levels: usize| {
            format!(
                "{}{{\"N\":\"x\"}}{}",
                r#"{"L":["#.repeat(levels),
                "]}".repeat(levels)
            )
        };
        for (json, too_deep) in [
            (deep(31), false),
            (deep(32), true),
            (deep(5000), true),
            (
                format!(r#"{{"M":{{"a":{{"N":"x"}},"b":{}}}}}"#, deep(40)),
                false,
            ),
            (
                format!(r#"{{"M":{{"b":{},"a":{{"N":"x"}}}}}}"#, deep(40)),
                true,
            ),
        ] {
            let attribute: Attribute = serde_json::from_str(&json).expect("well-formed");
            let problem = attribute.0.expect_err("a problem");
            assert_eq!(problem.is_too_deep(), too_deep, "{json}");
        }
        let json = format!(r#"{{"d":{},"":{{"S":"x"}}}}"#, deep(40));
        let attributes: Attributes = serde_json::from_str(&json).expect("well-formed");
        assert_eq!(
            attributes.0.expect_err("a problem").newer(),
            "Empty attribute name"
        );
    }

    #[test]
    fn values_of_all_types_are_read() {
        let json = r#"{"s":{"S":"é\n"},"n":{"N":"-1.50"},"b":{"B":"aGk="},"t":{"BOOL":false},"z":{"NULL":true},"m":{"M":{"x":{"S":""}}},"l":{"L":[{"N":"1"}]},"ss":{"SS":["b","a"]},"ns":{"NS":["2","1"]},"bs":{"BS":["YQ=="]}}"#;
        let attributes: Attributes = serde_json::from_str(json).expect("well-formed");
        let expected: Item = serde_json::from_str(json).expect("an item");
        assert_eq!(attributes.0.expect("valid"), expected);
    }
}
