//! Payload decoders: they turn the bytes of an uplink into an event. A decoder is a document that an operator writes;
//! it describes a layout, and runs no code of its own.

mod compile;
mod decode;
mod document;
mod load;
mod manage;
mod name;
mod number;
mod registry;

use homeport_store::StoreError;

use crate::cursor::CursorError;

pub use compile::{
    DESCRIPTION_CHARS_MAX, EVENT_TYPE_DEFAULT, FIELDS_MAX, InvalidDecoder, UNIT_CHARS_MAX,
    VALUE_CHARS_MAX, VALUES_MAX,
};
pub use decode::{DecodeError, Decoded, Decoder};
pub use document::{
    AppliesTo, BitsDocument, CodeDocument, DecoderDocument, Endian, FieldDocument, FlagsAs,
    Network, NumberType, PayloadForm,
};
pub use load::REFRESH_MS;
pub use manage::{Decoders, StoredDecoder};
pub use name::DecoderName;
pub use registry::{DEVICES_MAX, PORTS_MAX, PREFIX_BYTES_MAX};

pub(super) use load::LoadedDecoders;

/// Decoders of a store.
pub const DECODERS_MAX: usize = 100;
/// Bytes of a decoder as JSON.
pub const DECODER_BYTES_MAX: usize = 64 * 1024;

/// Why a request about decoders failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecodersError {
    #[error(transparent)]
    Invalid(#[from] InvalidDecoder),
    #[error("decoder {0} does not exist")]
    Missing(DecoderName),
    #[error("decoder {0} does not have this version")]
    VersionMissing(DecoderName),
    #[error("decoder {name} was changed: its version is {actual}")]
    Changed { name: DecoderName, actual: i64 },
    #[error("there are {DECODERS_MAX} decoders already, which is the limit")]
    TooMany,
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error("a stored decoder is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
