//! `/v1/chargers/decoders`: operators manage and test payload decoders.

mod body;
pub(super) mod read;
pub(super) mod test;
pub(super) mod write;
