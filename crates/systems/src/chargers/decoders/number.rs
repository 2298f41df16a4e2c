//! Reads a number from the bytes of a payload.

use homeport_item::Decimal;

use super::document::{BitsDocument, Endian, NumberType};

/// The position and the form of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberPlace {
    pub(super) offset: usize,
    pub(super) number_type: NumberType,
    pub(super) endian: Endian,
    pub(super) bits: Option<BitsDocument>,
}

/// A number as it is in the payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RawNumber {
    Whole(i128),
    F32(f32),
    F64(f64),
}

impl NumberType {
    pub(super) fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U24 | Self::I24 => 3,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Its bits.
    pub(super) fn width(self) -> u32 {
        match self.size() {
            1 => 8,
            2 => 16,
            3 => 24,
            4 => 32,
            _ => 64,
        }
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    pub(super) fn is_signed(self) -> bool {
        matches!(
            self,
            Self::I8 | Self::I16 | Self::I24 | Self::I32 | Self::I64
        )
    }
}

impl NumberPlace {
    /// The first byte after the number.
    pub(super) fn end(&self) -> usize {
        self.offset.saturating_add(self.number_type.size())
    }

    /// The bits of the value.
    pub(super) fn width(&self) -> u32 {
        self.bits
            .map_or(self.number_type.width(), |bits| bits.length)
    }

    /// The smallest and the largest value of a whole number.
    pub(super) fn range(&self) -> (i128, i128) {
        let width = self.width();
        if self.number_type.is_signed() {
            (-(1 << (width - 1)), (1 << (width - 1)) - 1)
        } else {
            (0, (1 << width) - 1)
        }
    }

    /// The number, unless the payload ends before it.
    pub(super) fn read(&self, payload: &[u8]) -> Option<RawNumber> {
        let bytes = payload.get(self.offset..self.end())?;
        let shift_in = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        let number = match self.endian {
            Endian::Big => bytes.iter().fold(0, shift_in),
            Endian::Little => bytes.iter().rev().fold(0, shift_in),
        };
        Some(match self.number_type {
            // Four bytes were read.
            NumberType::F32 => RawNumber::F32(f32::from_bits(u32::try_from(number).ok()?)),
            NumberType::F64 => RawNumber::F64(f64::from_bits(number)),
            _ => RawNumber::Whole(self.whole(number)),
        })
    }

    fn whole(&self, number: u64) -> i128 {
        let first = self.bits.map_or(0, |bits| bits.first);
        let width = self.width();
        let value = (i128::from(number) >> first) & ((1 << width) - 1);
        let is_negative = self.number_type.is_signed() && value >> (width - 1) == 1;
        if is_negative {
            value - (1 << width)
        } else {
            value
        }
    }
}

impl RawNumber {
    /// The exact whole number, or the shortest decimal of a float; `None` for NaN and infinity.
    pub(super) fn to_decimal(self) -> Option<Decimal> {
        match self {
            Self::Whole(number) => Decimal::try_from(number).ok(),
            Self::F32(number) if number.is_finite() => Decimal::parse(&format!("{number:e}")).ok(),
            Self::F32(_) => None,
            Self::F64(number) => Decimal::from_f64(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(number_type: NumberType, endian: Endian, bits: Option<(u32, u32)>) -> NumberPlace {
        NumberPlace {
            offset: 1,
            number_type,
            endian,
            bits: bits.map(|(first, length)| BitsDocument { first, length }),
        }
    }

    #[test]
    fn types_and_byte_orders_are_read() {
        use Endian::{Big, Little};
        use NumberType::{F32, I8, I16, I24, I64, U8, U16, U24, U64};
        let payload = [9, 0xff, 0xfe, 0xfd, 1, 2, 3, 4, 5];
        for (number_type, endian, bits, expected) in [
            (U8, Big, None, 255),
            (I8, Big, None, -1),
            (U16, Big, None, 0xfffe),
            (U16, Little, None, 0xfeff),
            (I16, Big, None, -2),
            (U24, Little, None, 0xfd_feff),
            (I24, Big, None, -259),
            (U64, Big, None, 0xfffe_fd01_0203_0405),
            (I64, Big, None, -0x0001_02fe_fdfc_fbfb),
            (U16, Big, Some((8, 4)), 15),
            (U16, Big, Some((0, 3)), 6),
            (I16, Big, Some((0, 3)), -2),
            (I8, Big, Some((0, 1)), -1),
            (U64, Big, Some((63, 1)), 1),
        ] {
            let read = place(number_type, endian, bits).read(&payload);
            assert_eq!(
                read,
                Some(RawNumber::Whole(expected)),
                "{number_type:?} {endian:?} {bits:?}"
            );
        }
        let float = [0, 0x3d, 0xcc, 0xcc, 0xcd];
        let read = place(F32, Big, None).read(&float).unwrap();
        assert_eq!(read.to_decimal().unwrap().to_string(), "0.1");
    }

    #[test]
    fn floats_without_a_value_have_no_decimal() {
        for raw in [
            RawNumber::F32(f32::NAN),
            RawNumber::F32(f32::NEG_INFINITY),
            RawNumber::F64(f64::NAN),
            RawNumber::F64(f64::INFINITY),
        ] {
            assert_eq!(raw.to_decimal(), None, "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn whole_numbers_round_trip(number: i64, offset in 0usize..20, is_little: bool) {
            let mut payload = vec![0xaa; offset];
            let endian = if is_little { Endian::Little } else { Endian::Big };
            payload.extend(if is_little { number.to_le_bytes() } else { number.to_be_bytes() });
            let place = NumberPlace { offset, number_type: NumberType::I64, endian, bits: None };
            prop_assert_eq!(place.read(&payload), Some(RawNumber::Whole(number.into())));
            prop_assert_eq!(place.read(&payload[..payload.len() - 1]), None);
        }

        #[test]
        fn bits_are_those_of_the_number(number: u64, first in 0u32..64, length in 1u32..=64) {
            let length = length.min(64 - first);
            let bits = Some(BitsDocument { first, length });
            let place =
                NumberPlace { offset: 0, number_type: NumberType::U64, endian: Endian::Big, bits };
            let expected: i128 = (0..length).map(|bit| i128::from(number >> (first + bit) & 1) << bit).sum();
            prop_assert_eq!(place.read(&number.to_be_bytes()), Some(RawNumber::Whole(expected)));
        }
    }
}
