//! Applies updates to items.
//!
//! All operands are evaluated on the original item before anything changes, so the order of
//! sections and assignments does not matter.

use super::path::{Path, PathElement};
use super::tree::{Update, UpdateOperand};
use crate::item::Item;
use crate::number::NumberError;
use crate::value::Value;

/// Why an update cannot be applied to an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    #[error("The document path provided in the update expression is invalid for update")]
    InvalidPath,
    #[error("The provided expression refers to an attribute that does not exist in the item")]
    MissingAttribute,
    #[error("An operand in the update expression has an incorrect data type")]
    WrongType,
    #[error(transparent)]
    Number(#[from] NumberError),
}

impl Update {
    /// Changes `item`. The tree must have passed [`Update::check`]; parsed trees have.
    ///
    /// Does not check the limits of an item.
    ///
    /// # Errors
    /// When the update does not fit the item, which is unchanged then.
    pub fn apply(&self, item: &mut Item) -> Result<(), UpdateError> {
        let mut put = Vec::new();
        let mut remove = Vec::new();
        for (path, operand) in &self.set {
            check_parent(item, path)?;
            put.push((path, evaluate(operand, item)?));
        }
        for (path, value) in &self.add {
            check_parent(item, path)?;
            put.push((path, sum(find(item, path), value)?));
        }
        for (path, members) in &self.delete {
            check_parent(item, path)?;
            match find(item, path) {
                None => {}
                Some(value) => match difference(value, members)? {
                    Some(rest) => put.push((path, rest)),
                    None => remove.push(path),
                },
            }
        }
        for path in &self.remove {
            check_parent(item, path)?;
            // An element that this update appends must not be mistaken for an old one.
            if find(item, path).is_some() {
                remove.push(path);
            }
        }
        // Elements past the end of a list are appended in the order of their indexes.
        put.sort_by_key(|(path, _)| *path);
        for (path, value) in put {
            put_at(item, path, value)?;
        }
        // In descending order, so a removal does not shift elements that are still to be removed.
        remove.sort_unstable();
        for path in remove.into_iter().rev() {
            remove_at(item, path)?;
        }
        Ok(())
    }
}

/// The value at `path` in `item`.
fn find<'a>(item: &'a Item, path: &Path) -> Option<&'a Value> {
    let top = item.get(path.name())?;
    path.nested().iter().try_fold(top, child)
}

fn child<'a>(value: &'a Value, element: &PathElement) -> Option<&'a Value> {
    match (value, element) {
        (Value::M(map), PathElement::Name(name)) => map.get(name),
        (Value::L(list), PathElement::Index(index)) => list.get(usize::try_from(*index).ok()?),
        _ => None,
    }
}

fn child_mut<'a>(value: &'a mut Value, element: &PathElement) -> Option<&'a mut Value> {
    match (value, element) {
        (Value::M(map), PathElement::Name(name)) => map.get_mut(name),
        (Value::L(list), PathElement::Index(index)) => list.get_mut(usize::try_from(*index).ok()?),
        _ => None,
    }
}

/// Checks that the parent of `path` is a map or list of the right kind.
fn check_parent(item: &Item, path: &Path) -> Result<(), UpdateError> {
    let Some((last, steps)) = path.nested().split_last() else {
        return Ok(());
    };
    let top = item.get(path.name()).ok_or(UpdateError::InvalidPath)?;
    match (steps.iter().try_fold(top, child), last) {
        (Some(Value::M(_)), PathElement::Name(_)) | (Some(Value::L(_)), PathElement::Index(_)) => {
            Ok(())
        }
        _ => Err(UpdateError::InvalidPath),
    }
}

/// The parent of a nested `path` and the last element of the path.
fn parent<'a, 'p>(item: &'a mut Item, path: &'p Path) -> Option<(&'a mut Value, &'p PathElement)> {
    let (last, steps) = path.nested().split_last()?;
    let top = item.attributes_mut().get_mut(path.name())?;
    Some((steps.iter().try_fold(top, child_mut)?, last))
}

// `check_parent` has validated every parent and disjoint paths do not remove one, so a parent is
// missing here only if the tree was not checked.
fn put_at(item: &mut Item, path: &Path, value: Value) -> Result<(), UpdateError> {
    if path.nested().is_empty() {
        item.insert(path.name(), value);
        return Ok(());
    }
    match parent(item, path) {
        Some((Value::M(map), PathElement::Name(name))) => {
            map.insert(name.clone(), value);
        }
        Some((Value::L(list), PathElement::Index(index))) => {
            let at = usize::try_from(*index).ok();
            match at.and_then(|at| list.get_mut(at)) {
                Some(element) => *element = value,
                None => list.push(value),
            }
        }
        _ => return Err(UpdateError::InvalidPath),
    }
    Ok(())
}

fn remove_at(item: &mut Item, path: &Path) -> Result<(), UpdateError> {
    if path.nested().is_empty() {
        item.remove(path.name());
        return Ok(());
    }
    match parent(item, path) {
        Some((Value::M(map), PathElement::Name(name))) => {
            map.remove(name);
        }
        Some((Value::L(list), PathElement::Index(index))) => {
            if let Ok(at) = usize::try_from(*index)
                && at < list.len()
            {
                list.remove(at);
            }
        }
        _ => return Err(UpdateError::InvalidPath),
    }
    Ok(())
}

fn evaluate(operand: &UpdateOperand, item: &Item) -> Result<Value, UpdateError> {
    let number = |operand| match evaluate(operand, item)? {
        Value::N(number) => Ok(number),
        _ => Err(UpdateError::WrongType),
    };
    let list = |operand| match evaluate(operand, item)? {
        Value::L(list) => Ok(list),
        _ => Err(UpdateError::WrongType),
    };
    match operand {
        UpdateOperand::Path(path) => match find(item, path) {
            Some(value) => Ok(value.clone()),
            None => Err(UpdateError::MissingAttribute),
        },
        UpdateOperand::Value(value) => Ok(value.clone()),
        UpdateOperand::IfNotExists(path, default) => match find(item, path) {
            Some(value) => Ok(value.clone()),
            None => evaluate(default, item),
        },
        UpdateOperand::ListAppend(left, right) => {
            let mut joined = list(left)?;
            joined.append(&mut list(right)?);
            Ok(Value::L(joined))
        }
        UpdateOperand::Plus(left, right) => {
            Ok(Value::N(number(left)?.checked_add(&number(right)?)?))
        }
        UpdateOperand::Minus(left, right) => {
            Ok(Value::N(number(left)?.checked_sub(&number(right)?)?))
        }
    }
}

/// The result of ADD on a value that may not exist yet.
fn sum(value: Option<&Value>, added: &Value) -> Result<Value, UpdateError> {
    Ok(match (value, added) {
        (None, Value::N(_) | Value::Ss(_) | Value::Ns(_) | Value::Bs(_)) => added.clone(),
        (Some(Value::N(value)), Value::N(added)) => Value::N(value.checked_add(added)?),
        (Some(Value::Ss(set)), Value::Ss(added)) => Value::Ss(set.union(added)),
        (Some(Value::Ns(set)), Value::Ns(added)) => Value::Ns(set.union(added)),
        (Some(Value::Bs(set)), Value::Bs(added)) => Value::Bs(set.union(added)),
        _ => return Err(UpdateError::WrongType),
    })
}

/// The result of DELETE on a set; `None` if it becomes empty.
fn difference(value: &Value, members: &Value) -> Result<Option<Value>, UpdateError> {
    Ok(match (value, members) {
        (Value::Ss(set), Value::Ss(members)) => set.difference(members).map(Value::Ss),
        (Value::Ns(set), Value::Ns(members)) => set.difference(members).map(Value::Ns),
        (Value::Bs(set), Value::Bs(members)) => set.difference(members).map(Value::Bs),
        _ => return Err(UpdateError::WrongType),
    })
}
