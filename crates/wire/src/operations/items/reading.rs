//! Parts that the operations that read items share.

use homeport_engine::{Attributes as ReadAttributes, StoredItem, StoredPage};
use homeport_item::expression::Projection;
use homeport_item::schema::{IndexSchema, TableSchema};
use homeport_item::{Item, json};
use homeport_store::{InvalidRequest, StoreError};

use crate::capacity::{self, Consumed, Wanted};
use crate::expressions::{self, GivenNames};
use crate::failure::Failure;
use crate::input::{Attributes, Text, Wording};
use crate::legacy;
use crate::output::{self, Object};

/// Parses a projection, the only expression of its request that uses the names.
pub(crate) fn projection(
    text: Option<&Text<'_>>,
    names: GivenNames<'_>,
) -> Result<Option<Projection>, Failure> {
    if text.is_none() {
        return Ok(None);
    }
    let mut placeholders = expressions::placeholders(names, None, Wording::Newer)?;
    let projection = expressions::projection(text, &mut placeholders)?;
    placeholders.check_all_used()?;
    Ok(projection)
}

/// Checks the parameters of a read that choose attributes against each other.
pub(crate) fn check_projection(
    expression: Option<&Text<'_>>,
    names: GivenNames<'_>,
    attributes: Option<&legacy::AttributesToGet<'_>>,
) -> Result<(), Failure> {
    expressions::check_parameters(
        &[],
        &[("ProjectionExpression", expression.is_some())],
        &[("AttributesToGet", attributes.is_some())],
        names.is_some(),
        false,
    )
}

/// Parses the projection expression, or the older list of attributes.
pub(crate) fn any_projection(
    expression: Option<&Text<'_>>,
    names: GivenNames<'_>,
    attributes: Option<&legacy::AttributesToGet<'_>>,
) -> Result<Option<Projection>, Failure> {
    let parsed = projection(expression, names)?;
    Ok(parsed.or(legacy::projection(attributes)?))
}

/// Writes an item or its projection.
pub(crate) fn write_item(
    item: &StoredItem,
    projection: Option<&Projection>,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    match projection {
        Some(projection) => item.write_projected_json(projection, out)?,
        None => item.write_json(out)?,
    }
    Ok(())
}

/// The key after which a page starts.
pub(crate) fn start_key(
    given: Option<Attributes>,
    wording: Wording,
) -> Result<Option<Item>, Failure> {
    let read = given.map(|Attributes(read)| read).transpose();
    read.map_err(|problem| match problem.omits_parameter() {
        true => problem.failure(wording),
        false => Failure::validation(format!(
            "The provided starting key is invalid: {}",
            problem.older()
        )),
    })
}

/// The parameter that names the attributes of a page, if there is one.
pub(crate) fn projecting(expression: bool, attributes_to_get: bool) -> Option<&'static str> {
    match (expression, attributes_to_get) {
        (true, _) => Some("ProjectionExpression"),
        (false, true) => Some("AttributesToGet"),
        (false, false) => None,
    }
}

/// The attributes of the items of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Select {
    /// The attributes that the table or index has.
    Projected,
    /// All attributes of the items, also those that an index does not project.
    All,
    Count,
}

impl Select {
    /// Checks `Select` against the other parameters; `projection` is the parameter that names attributes.
    pub(crate) fn of(
        given: Option<&Text<'_>>,
        projection: Option<&'static str>,
        has_index: bool,
    ) -> Result<Self, String> {
        let given = given.map(Text::as_str);
        if let Some(parameter) = projection
            && !matches!(given, None | Some("SPECIFIC_ATTRIBUTES"))
        {
            let what = match given {
                Some("COUNT") => "only the Count",
                Some(other) => other,
                None => "",
            };
            return Err(format!(
                "Cannot specify the {parameter} when choosing to get {what}"
            ));
        }
        match given {
            Some("SPECIFIC_ATTRIBUTES") if projection.is_none() => Err(
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
                    .to_owned(),
            ),
            Some("ALL_PROJECTED_ATTRIBUTES") if !has_index => Err(
                "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
                    .to_owned(),
            ),
            Some("COUNT") => Ok(Self::Count),
            Some("ALL_ATTRIBUTES") => Ok(Self::All),
            _ => Ok(Self::Projected),
        }
    }

    /// The attributes to read a page with. The engine refuses all attributes of an index that cannot have them.
    pub(crate) fn attributes(self) -> ReadAttributes {
        match self {
            Self::All => ReadAttributes::All,
            Self::Projected | Self::Count => ReadAttributes::Projected,
        }
    }
}

/// The index that a page is read from.
pub(crate) fn index<'a>(
    schema: &'a TableSchema,
    name: Option<&str>,
    consistent: bool,
) -> Result<Option<&'a IndexSchema>, Failure> {
    let Some(name) = name else {
        return Ok(None);
    };
    let index = schema
        .index(name)
        .ok_or_else(|| StoreError::IndexNotFound {
            table: schema.name.clone(),
            index: name.to_owned(),
        })?;
    if consistent && !index.local {
        let name = index.name.clone();
        return Err(StoreError::invalid(InvalidRequest::ConsistentRead(name)).into());
    }
    Ok(Some(index))
}

/// The parameters of the response with a page.
pub(crate) struct PageResponse<'a> {
    pub(crate) table: &'a str,
    pub(crate) index: Option<&'a IndexSchema>,
    pub(crate) projection: Option<&'a Projection>,
    pub(crate) select: Select,
    pub(crate) consistent: bool,
    pub(crate) capacity: Wanted,
}

impl PageResponse<'_> {
    pub(crate) fn write(&self, page: &StoredPage) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::with_capacity(128 + page.scanned_bytes * 2);
        let mut object = Object::new(&mut out);
        object.count("Count", page.count);
        object.count("ScannedCount", page.scanned);
        let fetched_units = capacity::fetch_units(&page.fetched_sizes, self.consistent);
        if self.select != Select::Count {
            let list = object.member("Items");
            output::try_list(list, &page.items, |item, out| {
                write_item(item, self.projection, out)
            })?;
        }
        if let Some(next) = &page.next {
            json::write_item(next, object.member("LastEvaluatedKey"));
        }
        if self.capacity.anything() {
            let units = capacity::read_units(page.scanned_bytes, self.consistent);
            let consumed = match self.index {
                Some(index) => Consumed::of_index(index, units, fetched_units),
                None => Consumed::of_table(units),
            };
            consumed.write_member(&mut object, self.table, self.capacity);
        }
        object.end();
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn contradictory_selections_are_rejected() {
        for (given, projection, index, expected) in [
            (None, false, false, Ok(Select::Projected)),
            (Some("COUNT"), false, false, Ok(Select::Count)),
            (Some("ALL_ATTRIBUTES"), false, true, Ok(Select::All)),
            (
                Some("SPECIFIC_ATTRIBUTES"),
                true,
                false,
                Ok(Select::Projected),
            ),
            (
                Some("COUNT"),
                true,
                false,
                Err("Cannot specify the ProjectionExpression when choosing to get only the Count"),
            ),
            (
                Some("ALL_PROJECTED_ATTRIBUTES"),
                true,
                false,
                Err(
                    "Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES",
                ),
            ),
            (
                Some("ALL_PROJECTED_ATTRIBUTES"),
                false,
                false,
                Err("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"),
            ),
            (
                Some("SPECIFIC_ATTRIBUTES"),
                false,
                false,
                Err(
                    "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
                ),
            ),
        ] {
            let text = given.map(|given| Text(Cow::Borrowed(given)));
            let parameter = projection.then_some("ProjectionExpression");
            let selected = Select::of(text.as_ref(), parameter, index);
            assert_eq!(
                selected.as_ref().map_err(String::as_str),
                expected.as_ref().map_err(|text| *text)
            );
        }
    }
}
