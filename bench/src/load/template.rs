//! A prebuilt request, in which only some numbers change.
//!
//! The numbers have a fixed width, so a request is built once, and sending it with another key only rewrites digits.

/// A request that is complete except for its numbers.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    offset: usize,
    width: usize,
    digits: Digits,
}

/// The number at a position, derived from the request's number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Digits {
    /// The request's number plus this.
    Plus(u64),
    /// The request's number divided by `size`, modulo `count`.
    Group { size: u64, count: u64 },
}

/// The body of a template under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

impl Body {
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    pub(crate) fn digits(mut self, width: usize, digits: Digits) -> Self {
        self.slots.push(Slot {
            offset: self.bytes.len(),
            width,
            digits,
        });
        self.bytes.resize(self.bytes.len() + width, b'0');
        self
    }

    pub(crate) fn then(mut self, other: Self) -> Self {
        let start = self.bytes.len();
        self.slots.extend(other.slots.iter().map(|slot| Slot {
            offset: start + slot.offset,
            ..*slot
        }));
        self.bytes.extend_from_slice(&other.bytes);
        self
    }

    /// The body for one number.
    #[cfg(test)]
    pub(crate) fn filled(&self, number: u64) -> String {
        let mut bytes = self.bytes.clone();
        fill(&mut bytes, &self.slots, number);
        String::from_utf8(bytes).expect("texts and digits are UTF-8")
    }
}

impl Template {
    /// A `POST` to `path`; every header line ends in `\r\n`.
    pub(crate) fn post(path: &str, headers: &str, body: &Body) -> Self {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {}\r\n\r\n",
            body.bytes.len()
        );
        let whole = Body::default().text(&head).then(body.clone());
        Self {
            bytes: whole.bytes,
            slots: whole.slots,
        }
    }

    /// The request for one number.
    pub(crate) fn fill(&mut self, number: u64) -> &[u8] {
        fill(&mut self.bytes, &self.slots, number);
        &self.bytes
    }
}

fn fill(bytes: &mut [u8], slots: &[Slot], number: u64) {
    for slot in slots {
        let mut left = match slot.digits {
            Digits::Plus(more) => number + more,
            Digits::Group { size, count } => number / size % count,
        };
        for byte in bytes[slot.offset..slot.offset + slot.width]
            .iter_mut()
            .rev()
        {
            *byte = b'0' + (left % 10) as u8;
            left /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_their_places() {
        let inner = Body::default()
            .text("b")
            .digits(2, Digits::Group { size: 5, count: 4 });
        let body = Body::default()
            .text("a")
            .digits(4, Digits::Plus(7))
            .then(inner);
        assert_eq!(body.filled(35), "a0042b03");
        let mut template = Template::post("/x", "A: b\r\n", &body);
        let expected =
            "POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nA: b\r\nContent-Length: 8\r\n\r\na0013b01";
        assert_eq!(template.fill(6), expected.as_bytes());
    }
}
