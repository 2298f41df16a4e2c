//! Evaluates SELECT to one value, or to an object built from a list.

use std::borrow::Cow;

use crate::evaluate::{Context, EvaluationError, Scope, whole};
use crate::parse::tree::{Expression, SelectItem, Selected, Selection};
use crate::value::Value;
use crate::value::object::Object;

pub(crate) fn select(
    selection: &Selection,
    scope: Scope<'_>,
    context: &mut Context<'_>,
) -> Result<Value, EvaluationError> {
    match selection {
        Selection::Value(selected) => one(selected, scope, context),
        Selection::Items(items) => match &items[..] {
            // A lone `*` is the payload of any type, including raw bytes.
            [
                SelectItem {
                    selected: selected @ Selected::Everything,
                    path,
                    ..
                },
            ] if path.is_empty() => one(selected, scope, context),
            _ => {
                let object = object(items, scope, context)?;
                context.check_depth(Value::Object(object))
            }
        },
    }
}

fn one(
    selected: &Selected,
    scope: Scope<'_>,
    context: &mut Context<'_>,
) -> Result<Value, EvaluationError> {
    let value = match selected {
        Selected::Everything => whole(scope),
        Selected::Members(expression) => {
            let value = context.evaluate(expression, scope)?;
            if members(&value, expression, context).is_none() {
                return Ok(Value::Undefined);
            }
            value
        }
        Selected::Expression(expression) => context.evaluate(expression, scope)?,
    };
    context.own(value)
}

/// Builds the object of a SELECT list, in the order of the list.
///
/// DIFFERENCE: an AS name belongs to the statement. The payload's member of that name is dropped,
/// wherever `*` is and even if the value is Undefined, so a device cannot forge its own
/// `thing_name`.
fn object(
    items: &[SelectItem],
    scope: Scope<'_>,
    context: &mut Context<'_>,
) -> Result<Object, EvaluationError> {
    let mut object = Object::new();
    let mut named: Vec<(&SelectItem, Value)> = Vec::with_capacity(items.len());
    for item in items {
        let value = match &item.selected {
            Selected::Everything if item.path.is_empty() => {
                merge(&mut object, everything(scope)?, context)?;
                continue;
            }
            Selected::Members(expression) if item.path.is_empty() => {
                let value = context.evaluate(expression, scope)?;
                if let Some(members) = members(&value, expression, context) {
                    merge(&mut object, members, context)?;
                }
                continue;
            }
            Selected::Everything => context.own(Cow::Borrowed(json_whole(scope)?))?,
            selected => one(selected, scope, context)?,
        };
        // The name gets its position now and its value after all others.
        if !value.is_undefined() && !object.contains(&item.path[0]) {
            object.insert(item.path[0].clone(), Value::Undefined);
        }
        named.push((item, value));
    }
    // The payload's members with AS names are removed first: a later value may still replace them.
    let mut emptied = Vec::new();
    for (item, value) in &named {
        if item.has_alias && value.is_undefined() {
            if let Some(forged) = find(&mut object, &item.path) {
                *forged = Value::Undefined;
            }
            emptied.push(&item.path);
        }
    }
    for (item, value) in named {
        if !value.is_undefined() {
            put(&mut object, &item.path, value);
        }
    }
    for path in emptied {
        remove_undefined(&mut object, path);
    }
    Ok(object)
}

fn merge(
    object: &mut Object,
    members: &Object,
    context: &mut Context<'_>,
) -> Result<(), EvaluationError> {
    for (name, value) in members.iter() {
        context.spend_bytes(name.len() + value.weight())?;
        object.insert(name, value.clone());
    }
    Ok(())
}

/// The members that `.*` selects: those of an object, none of anything else.
fn members<'v>(
    value: &'v Value,
    expression: &Expression,
    context: &mut Context<'_>,
) -> Option<&'v Object> {
    let object = value.as_object();
    if object.is_none() && !value.is_undefined() {
        let kind = value.kind();
        context.note(expression.span, || format!("{kind} has no members").into());
    }
    object
}

fn everything<'v>(scope: Scope<'v>) -> Result<&'v Object, EvaluationError> {
    match json_whole(scope)? {
        Value::Object(object) => Ok(object),
        other => Err(EvaluationError::NotAnObject(other.kind())),
    }
}

fn json_whole<'v>(scope: Scope<'v>) -> Result<&'v Value, EvaluationError> {
    match scope.current {
        Some(current) => Ok(current),
        None => scope
            .message
            .payload
            .json()
            .map_err(|error| EvaluationError::NotJson {
                name: "*".to_owned(),
                source: error.clone(),
            }),
    }
}

/// Inserts a value under a dotted name. A non-object in the way is replaced.
fn put(object: &mut Object, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => {
            object.insert(name.as_str(), value);
        }
        [name, rest @ ..] => {
            if !matches!(object.get(name), Some(Value::Object(_))) {
                object.insert(name.as_str(), Value::Object(Object::new()));
            }
            if let Some(Value::Object(inner)) = object.get_mut(name) {
                put(inner, rest, value);
            }
        }
    }
}

fn find<'o>(object: &'o mut Object, path: &[String]) -> Option<&'o mut Value> {
    match path {
        [] => None,
        [name] => object.get_mut(name),
        [name, rest @ ..] => match object.get_mut(name) {
            Some(Value::Object(inner)) => find(inner, rest),
            _ => None,
        },
    }
}

fn remove_undefined(object: &mut Object, path: &[String]) {
    match path {
        [] => {}
        [name] => {
            if object.get(name).is_some_and(Value::is_undefined) {
                object.remove(name);
            }
        }
        [name, rest @ ..] => {
            if let Some(Value::Object(inner)) = object.get_mut(name) {
                remove_undefined(inner, rest);
            }
        }
    }
}
