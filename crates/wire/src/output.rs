//! Writes the JSON of a response into one buffer.

use std::convert::Infallible;

use homeport_item::json;
use serde::Serialize;

use crate::failure::Failure;

/// A JSON object that is being written.
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Starts a member. The caller writes its value to the returned buffer.
    pub(crate) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        json::write_string(name, self.out);
        self.out.push(b':');
        self.out
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        json::write_string(value, self.member(name));
    }

    pub(crate) fn count(&mut self, name: &str, value: usize) {
        let out = self.member(name);
        out.extend_from_slice(value.to_string().as_bytes());
    }

    /// Writes a number of capacity units, always with one decimal.
    pub(crate) fn units(&mut self, name: &str, value: f64) {
        let out = self.member(name);
        out.extend_from_slice(format!("{value:.1}").as_bytes());
    }

    pub(crate) fn object(&mut self, name: &str, write: impl FnOnce(&mut Object<'_>)) {
        let mut object = Object::new(self.member(name));
        write(&mut object);
        object.end();
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// Writes elements with commas between them.
pub(crate) fn list<T>(
    out: &mut Vec<u8>,
    elements: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    let written: Result<(), Infallible> = try_list(out, elements, |element, out| {
        write(element, out);
        Ok(())
    });
    match written {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

/// Writes elements that may fail, with commas between them.
pub(crate) fn try_list<T, E>(
    out: &mut Vec<u8>,
    elements: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    out.push(b'[');
    for (at, element) in elements.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(element, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes a value through serde.
pub(crate) fn serialized(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer(out, value).map_err(|error| Failure::internal(&error))
}

/// A response with one member.
pub(crate) fn single_member(name: &str, value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(1024);
    let mut object = Object::new(&mut out);
    serialized(object.member(name), value)?;
    object.end();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_separated() {
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        object.text("a", "x\"");
        object.count("b", 3);
        object.units("c", 0.5);
        object.object("d", |_| {});
        list(object.member("e"), [1, 2], |number, out| {
            out.push(b'0' + number);
        });
        object.end();
        assert_eq!(
            String::from_utf8_lossy(&out),
            r#"{"a":"x\"","b":3,"c":0.5,"d":{},"e":[1,2]}"#
        );
    }
}
