//! A payload decoder as operators write it. `compile` checks it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json_object;

/// The layout of payloads, and the uplinks that have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecoderDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, deserialize_with = "json_object::deserialize")]
    pub applies_to: AppliesTo,
    #[serde(default)]
    pub payload: PayloadForm,
    /// The byte order of fields without one.
    #[serde(default)]
    pub endian: Endian,
    /// The type of all events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// A code in the payload that determines the type of the event.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::optional"
    )]
    pub event_type_from: Option<CodeDocument>,
    #[serde(deserialize_with = "json_object::list")]
    pub fields: Vec<FieldDocument>,
}

/// The uplinks that a decoder is for. All given conditions must hold; without any, it is for all uplinks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AppliesTo {
    /// UUIDs or SC-IDs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Ports of LoRaWAN.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub f_ports: Vec<u8>,
    /// The first bytes of the payload, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// The network that delivered an uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    Sidewalk,
    LoRaWan,
}

/// What the payload contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadForm {
    #[default]
    Bytes,
    /// The bytes as hexadecimal digits, as Sidewalk's sample applications send them.
    HexText,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Endian {
    #[default]
    Big,
    Little,
}

/// The type of a number in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberType {
    U8,
    U16,
    U24,
    U32,
    U64,
    I8,
    I16,
    I24,
    I32,
    I64,
    F32,
    F64,
}

/// Some bits of a whole number; bit 0 is the least significant one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitsDocument {
    pub first: u32,
    pub length: u32,
}

/// A number in a payload with a text for each of its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeDocument {
    pub offset: usize,
    #[serde(rename = "type")]
    pub number_type: NumberType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endian: Option<Endian>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::optional"
    )]
    pub bits: Option<BitsDocument>,
    pub values: BTreeMap<String, String>,
}

/// A member of the event's data, or several of them for flags.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldDocument {
    pub name: String,
    /// Bytes before the field.
    pub offset: usize,
    #[serde(rename = "type")]
    pub number_type: NumberType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endian: Option<Endian>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::optional"
    )]
    pub bits: Option<BitsDocument>,
    /// The number is multiplied by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// This is added after scaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<f64>,
    /// For readers of the decoder; it changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The text for each number; `*` is for all other numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<BTreeMap<String, String>>,
    /// The name of each bit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags_as: Option<FlagsAs>,
    /// Whether payloads may end before the field, which is then absent.
    #[serde(default)]
    pub optional: bool,
}

/// How flags are in the event's data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagsAs {
    /// A member for each flag, true or false.
    #[default]
    Booleans,
    /// One member with the names of the flags that are set.
    List,
}
