//! `AttributesToGet`: the top-level attributes that a read returns.

use std::collections::BTreeSet;

use homeport_item::expression::Projection;
use homeport_item::item::ItemError;

use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{List, Text};

/// The largest number of names in a request.
const NAMES_MAX: usize = 255;

pub(crate) type AttributesToGet<'a> = List<Text<'a>>;

/// The constraint on the number of names.
pub(crate) fn constrain_names(
    constraints: &mut Constraints,
    path: &str,
    given: Option<&AttributesToGet<'_>>,
) {
    constraints.list_length(path, given, 1, NAMES_MAX);
}

/// The names as a projection. A dot is part of a name.
pub(crate) fn projection(
    given: Option<&AttributesToGet<'_>>,
) -> Result<Option<Projection>, Failure> {
    let Some(List(names)) = given else {
        return Ok(None);
    };
    let mut seen = BTreeSet::new();
    for name in names {
        if name.as_str().is_empty() {
            return Err(Failure::validation(ItemError::EmptyName.to_string()));
        }
        if !seen.insert(name.as_str()) {
            return Err(Failure::invalid_values(format_args!(
                "Duplicate value in attribute name: {}",
                name.as_str()
            )));
        }
    }
    Ok(Some(Projection::new(names.iter().map(Text::as_str))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::expression::Path;

    #[test]
    fn names_are_top_level_attributes_and_unique() {
        let names = |json: &'static str| -> AttributesToGet<'static> {
            serde_json::from_str(json).expect("names")
        };
        let read = projection(Some(&names(r#"["a","b.c"]"#))).expect("valid");
        assert_eq!(
            read.map(|projection| projection.paths),
            Some(vec![Path::new("a"), Path::new("b.c")])
        );
        assert_eq!(
            projection(Some(&names(r#"["a","b","a"]"#)))
                .expect_err("refused")
                .text(),
            Some("One or more parameter values were invalid: Duplicate value in attribute name: a")
        );
        assert_eq!(
            projection(Some(&names(r#"["a",""]"#)))
                .expect_err("refused")
                .text(),
            Some("Empty attribute name")
        );
        assert_eq!(projection(None), Ok(None));
        let mut constraints = Constraints::new();
        constrain_names(&mut constraints, "attributesToGet", Some(&names("[]")));
        assert_eq!(
            constraints.finish().expect_err("a violation").text(),
            Some(
                "1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy constraint: Member must have length greater than or equal to 1"
            )
        );
    }
}
