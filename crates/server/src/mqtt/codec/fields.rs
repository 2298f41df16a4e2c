//! Reads the fields of a packet. Every length is checked.

use bytes::{Buf as _, Bytes};

use super::reason::Refusal;

/// Bytes of a variable-length number.
pub(super) const VARIABLE_LEN_MAX: usize = 4;

/// The unread rest of a packet.
pub(super) struct Fields(Bytes);

impl Fields {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn u8(&mut self) -> Result<u8, Refusal> {
        self.0.try_get_u8().map_err(|_| short())
    }

    pub(super) fn u16(&mut self) -> Result<u16, Refusal> {
        self.0.try_get_u16().map_err(|_| short())
    }

    pub(super) fn u32(&mut self) -> Result<u32, Refusal> {
        self.0.try_get_u32().map_err(|_| short())
    }

    /// A packet identifier, by which packets are acknowledged; zero is invalid.
    pub(super) fn packet_id(&mut self) -> Result<u16, Refusal> {
        match self.u16()? {
            0 => Err(Refusal::malformed("the packet identifier is 0")),
            id => Ok(id),
        }
    }

    pub(super) fn variable(&mut self) -> Result<u32, Refusal> {
        let mut value = 0;
        for index in 0..VARIABLE_LEN_MAX {
            let byte = self.u8()?;
            value |= u32::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                if byte == 0 && index > 0 {
                    return Err(Refusal::malformed(
                        "a number is not encoded in its shortest form",
                    ));
                }
                return Ok(value);
            }
        }
        Err(Refusal::malformed("a number has more than four bytes"))
    }

    pub(super) fn take(&mut self, len: usize) -> Result<Bytes, Refusal> {
        if len > self.0.len() {
            return Err(short());
        }
        Ok(self.0.split_to(len))
    }

    pub(super) fn binary(&mut self) -> Result<Bytes, Refusal> {
        let len = self.u16()?;
        self.take(len.into())
    }

    pub(super) fn text(&mut self) -> Result<String, Refusal> {
        let bytes = self.binary()?;
        let text =
            std::str::from_utf8(&bytes).map_err(|_| Refusal::malformed("a text is not UTF-8"))?;
        if text.contains('\0') {
            return Err(Refusal::malformed("a text has a null character"));
        }
        Ok(text.to_owned())
    }

    pub(super) fn rest(self) -> Bytes {
        self.0
    }

    /// Checks that everything was read.
    pub(super) fn end(self) -> Result<(), Refusal> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Refusal::malformed("a packet is longer than its fields"))
        }
    }
}

fn short() -> Refusal {
    Refusal::malformed("a packet is shorter than its fields")
}
