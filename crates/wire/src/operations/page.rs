//! Pages of the operations that list resources.

use crate::failure::Failure;
use crate::input::Integer;
use crate::output::{self, Object};

/// A page of a listing.
#[derive(Debug)]
pub(crate) struct Page<T> {
    entries: Vec<T>,
    has_more: bool,
}

/// The members of a response that hold a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageMembers {
    pub(crate) entries: &'static str,
    /// Where the next page starts; absent on the last page.
    pub(crate) next: &'static str,
}

/// The number of entries that a request asks for. The constraints have checked it.
pub(crate) fn limit(given: Option<Integer>, max: i64) -> usize {
    let limit = given.map_or(max, |limit| limit.0);
    usize::try_from(limit).unwrap_or(1)
}

impl<T> Page<T> {
    /// The first page of the remaining entries of a listing.
    pub(crate) fn of(entries: impl IntoIterator<Item = T>, limit: usize) -> Self {
        let mut rest = entries.into_iter();
        let entries = rest.by_ref().take(limit).collect();
        Self {
            entries,
            has_more: rest.next().is_some(),
        }
    }

    pub(crate) fn entries(&self) -> &[T] {
        &self.entries
    }

    /// The last entry, if another page follows.
    pub(crate) fn last_before_more(&self) -> Option<&T> {
        self.entries.last().filter(|_| self.has_more)
    }

    /// The response with this page; `token` is the text that continues after an entry.
    pub(crate) fn respond(
        &self,
        members: PageMembers,
        write: impl FnMut(&T, &mut Vec<u8>) -> Result<(), Failure>,
        token: impl FnOnce(&T) -> String,
    ) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::with_capacity(256);
        let mut object = Object::new(&mut out);
        output::try_list(object.member(members.entries), &self.entries, write)?;
        if let Some(last) = self.last_before_more() {
            object.text(members.next, &token(last));
        }
        object.end();
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::json;

    #[test]
    fn only_the_last_page_has_no_token() {
        let members = PageMembers {
            entries: "Names",
            next: "NextToken",
        };
        let respond = |limit: usize| {
            let page = Page::of(["a", "b", "c"], limit);
            let write = |name: &&str, out: &mut Vec<u8>| {
                json::write_string(name, out);
                Ok(())
            };
            let json = page.respond(members, write, |last| (*last).to_owned());
            String::from_utf8(json.expect("a response")).expect("text")
        };
        assert_eq!(respond(2), r#"{"Names":["a","b"],"NextToken":"b"}"#);
        assert_eq!(respond(3), r#"{"Names":["a","b","c"]}"#);
    }
}
