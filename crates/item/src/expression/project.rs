//! Parses, validates and applies projections.

use std::collections::BTreeMap;

use super::error::{ExpressionError, ExpressionKind};
use super::overlap;
use super::parser::{Findings, Parser};
use super::path::{Document, Path, PathElement};
use super::placeholders::Placeholders;
use super::tree::Projection;
use crate::binary::DecodeError;
use crate::item::Item;
use crate::map::Map;
use crate::value::Value;

impl Projection {
    /// Parses a ProjectionExpression.
    ///
    /// # Errors
    /// When the text is invalid, with DynamoDB's message.
    pub fn parse(text: &str, placeholders: &mut Placeholders) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(ExpressionKind::Projection, text, placeholders)?;
        let mut paths = vec![parser.path()?];
        while parser.take_sign(",") {
            paths.push(parser.path()?);
        }
        overlap::check(&paths, parser.findings());
        parser.finish()?;
        Ok(Self { paths })
    }

    /// Validates a projection built in code with the same checks as a parsed one.
    ///
    /// # Errors
    /// When paths overlap or conflict.
    pub fn check(&self) -> Result<(), ExpressionError> {
        let mut findings = Findings::default();
        overlap::check(&self.paths, &mut findings);
        findings.into_result(ExpressionKind::Projection)
    }

    /// The parts of `item` at the paths. Maps keep only the selected members; the selected elements
    /// of a list close ranks.
    #[must_use]
    pub fn apply(&self, item: &Item) -> Item {
        let picked = self.by_name().into_iter().filter_map(|(name, paths)| {
            let value = pick(item.get(name)?, &paths)?;
            Some((name.to_owned(), value))
        });
        Item::from(picked.collect::<Map>())
    }

    /// Like [`Projection::apply`], for any document.
    ///
    /// # Errors
    /// When the stored form of the document is damaged.
    pub fn read<D: Document + ?Sized>(&self, document: &D) -> Result<Item, DecodeError> {
        let mut picked = Map::new();
        for (name, paths) in self.by_name() {
            let value = document.resolve(&Path::new(name))?;
            if let Some(value) = value.and_then(|value| pick(&value, &paths)) {
                picked.insert(name.to_owned(), value);
            }
        }
        Ok(Item::from(picked))
    }

    /// The paths below each top-level attribute.
    fn by_name(&self) -> BTreeMap<&str, Vec<&[PathElement]>> {
        let mut names: BTreeMap<&str, Vec<&[PathElement]>> = BTreeMap::new();
        for path in &self.paths {
            names.entry(path.name()).or_default().push(path.nested());
        }
        names
    }
}

impl<'a, I: IntoIterator<Item = &'a Path>> From<I> for Projection {
    fn from(paths: I) -> Self {
        let paths = paths.into_iter().cloned().collect();
        Self { paths }
    }
}

/// The parts of `value` at `paths`; `None` if no path exists in it.
fn pick(value: &Value, paths: &[&[PathElement]]) -> Option<Value> {
    // The paths below each child.
    let mut below: BTreeMap<&PathElement, Vec<&[PathElement]>> = BTreeMap::new();
    for path in paths {
        let Some((first, rest)) = path.split_first() else {
            return Some(value.clone());
        };
        below.entry(first).or_default().push(rest);
    }
    match value {
        Value::M(map) => {
            let member = |(element, paths): (&PathElement, Vec<_>)| match element {
                PathElement::Name(name) => Some((name.clone(), pick(map.get(name)?, &paths)?)),
                PathElement::Index(_) => None,
            };
            let picked: Map = below.into_iter().filter_map(member).collect();
            (!picked.is_empty()).then_some(Value::M(picked))
        }
        Value::L(list) => {
            let element = |(element, paths): (&PathElement, Vec<_>)| match element {
                PathElement::Index(index) => pick(list.get(usize::try_from(*index).ok()?)?, &paths),
                PathElement::Name(_) => None,
            };
            let picked: Vec<Value> = below.into_iter().filter_map(element).collect();
            (!picked.is_empty()).then_some(Value::L(picked))
        }
        _ => None,
    }
}
