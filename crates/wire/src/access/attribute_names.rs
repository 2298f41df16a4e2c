//! The top-level attributes that a request names, for `dynamodb:Attributes`.

use homeport_item::expression::{KeyConditions, Update, UpdateOperand};

use super::request_context::Values;
use crate::expressions::{self, GivenNames, GivenValues};
use crate::input::{Attributes, Mapping, Text, Wording};
use crate::legacy::AttributesToGet;

/// The expressions of a request with their placeholders.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expressions<'i> {
    pub(crate) names: GivenNames<'i>,
    pub(crate) values: GivenValues<'i>,
    pub(crate) condition: Option<&'i Text<'i>>,
    pub(crate) filter: Option<&'i Text<'i>>,
    pub(crate) key_condition: Option<&'i Text<'i>>,
    pub(crate) projection: Option<&'i Text<'i>>,
    pub(crate) update: Option<&'i Text<'i>>,
}

impl Expressions<'_> {
    /// The attributes that the expressions name; unknown if one of them is invalid.
    pub(crate) fn attributes(&self) -> Values {
        self.names().map_or(Values::Unknown, known)
    }

    fn names(&self) -> Option<Vec<String>> {
        let given = [
            self.condition,
            self.filter,
            self.key_condition,
            self.projection,
            self.update,
        ];
        if given.iter().all(Option::is_none) {
            return Some(Vec::new());
        }
        let wording = Wording::Older;
        let mut placeholders = expressions::placeholders(self.names, self.values, wording).ok()?;
        let mut names = Vec::new();
        for condition in [
            expressions::condition(self.condition, &mut placeholders).ok()?,
            expressions::filter(self.filter, &mut placeholders).ok()?,
        ] {
            let paths = condition.iter().flat_map(|condition| condition.paths());
            names.extend(paths.map(|path| path.name().to_owned()));
        }
        if let Some(text) = self.key_condition {
            let conditions = KeyConditions::parse(text.as_str(), &mut placeholders).ok()?;
            names.extend(conditions.names().map(str::to_owned));
        }
        if let Some(projection) =
            expressions::projection(self.projection, &mut placeholders).ok()?
        {
            names.extend(projection.paths.iter().map(|path| path.name().to_owned()));
        }
        if let Some(text) = self.update {
            names.extend(update_names(
                &Update::parse(text.as_str(), &mut placeholders).ok()?,
            ));
        }
        Some(names)
    }

    /// The partition that the key condition selects.
    pub(crate) fn partition(&self, name: &str) -> Values {
        let wording = Wording::Older;
        let conditions = self.key_condition.and_then(|text| {
            let mut placeholders =
                expressions::placeholders(self.names, self.values, wording).ok()?;
            KeyConditions::parse(text.as_str(), &mut placeholders).ok()
        });
        let value = conditions
            .as_ref()
            .and_then(|found| found.equality_value(name));
        value.map_or(Values::Unknown, super::resources::key_text)
    }
}

/// The attributes of an item or a key; unknown if one of them is invalid.
pub(crate) fn attributes_of(given: Option<&Attributes>) -> Values {
    match given.map(|given| &given.0) {
        None => Values::Absent,
        Some(Ok(item)) => known(item.iter().map(|(name, _)| name.to_owned())),
        Some(Err(_)) => Values::Unknown,
    }
}

/// The attributes that `AttributesToGet` lists.
pub(crate) fn listed(given: Option<&AttributesToGet<'_>>) -> Values {
    let names = given.iter().flat_map(|names| &names.0);
    known(names.map(|name| name.as_str().to_owned()))
}

impl Values {
    /// The keys of a map such as `Expected`.
    pub(crate) fn keys<T>(given: Option<&Mapping<'_, T>>) -> Self {
        let keys = given.iter().flat_map(|map| &map.0);
        known(keys.map(|(name, _)| name.to_string()))
    }
}

pub(super) fn known(names: impl IntoIterator<Item = String>) -> Values {
    let names: Vec<String> = names.into_iter().collect();
    match names.is_empty() {
        true => Values::Absent,
        false => Values::Known(names),
    }
}

/// The attributes that an update changes or reads.
pub(super) fn update_names(update: &Update) -> Vec<String> {
    let mut names: Vec<String> = update.paths().map(|path| path.name().to_owned()).collect();
    for (_, operand) in &update.set {
        operand_names(operand, &mut names);
    }
    names
}

fn operand_names(operand: &UpdateOperand, names: &mut Vec<String>) {
    match operand {
        UpdateOperand::Value(_) => {}
        UpdateOperand::Path(path) => names.push(path.name().to_owned()),
        UpdateOperand::IfNotExists(path, default) => {
            names.push(path.name().to_owned());
            operand_names(default, names);
        }
        UpdateOperand::ListAppend(left, right)
        | UpdateOperand::Plus(left, right)
        | UpdateOperand::Minus(left, right) => {
            operand_names(left, names);
            operand_names(right, names);
        }
    }
}
