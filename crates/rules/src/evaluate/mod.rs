//! Evaluates expressions. Values at paths are borrowed from the payload, not copied.

pub(crate) mod convert;
pub(crate) mod explain;
pub(crate) mod functions;
pub(crate) mod operators;
pub(crate) mod select;

use std::borrow::Cow;

use crate::evaluate::convert::{to_boolean, to_index};
use crate::evaluate::functions::Function;
use crate::message::{Message, Randomness};
use crate::parse::tree::{Call, Expression, Logic, Node, Select, Span};
use crate::value::json::JsonError;
use crate::value::object::Object;
use crate::value::{Kind, Value};

/// Maximum work of one evaluation, in units of one evaluated expression or 64 created bytes. Nested
/// SELECTs could otherwise keep a processor busy with one payload.
pub const WORK_MAX: u64 = 500_000;
const BYTES_PER_UNIT: usize = 64;
/// Maximum nesting of arrays and objects in created values. Variables that wrap each other could
/// otherwise overflow the stack.
pub const VALUE_DEPTH_MAX: usize = 128;
/// Maximum number of reasons in an explanation.
pub const NOTES_MAX: usize = 100;

/// Why the evaluation of a statement failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    #[error("the payload is not JSON, and the statement refers to `{name}` in it")]
    NotJson {
        name: String,
        #[source]
        source: JsonError,
    },
    #[error("the payload is {0}, but `*` with other selected values requires an object")]
    NotAnObject(Kind),
    #[error("a value has more than {VALUE_DEPTH_MAX} nested arrays and objects")]
    TooDeep,
    #[error("the evaluation exceeds the limit of {WORK_MAX} work units")]
    TooMuchWork,
}

/// Why a function or operator has no value: it is Undefined, or the evaluation fails.
#[derive(Debug)]
pub(crate) enum Fault {
    Undefined(Cow<'static, str>),
    Ends(EvaluationError),
}

impl From<EvaluationError> for Fault {
    fn from(error: EvaluationError) -> Self {
        Self::Ends(error)
    }
}

impl From<&'static str> for Fault {
    fn from(reason: &'static str) -> Self {
        Self::Undefined(Cow::Borrowed(reason))
    }
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Undefined(Cow::Owned(reason))
    }
}

/// The scope in which names are resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'v> {
    pub(crate) message: &'v Message<'v>,
    /// The source of a nested SELECT; `None` for the whole payload.
    pub(crate) current: Option<&'v Value>,
    pub(crate) variables: &'v [Value],
}

/// A reason with its position.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) span: Span,
    pub(crate) text: Cow<'static, str>,
}

/// The mutable state of an evaluation.
pub(crate) struct Context<'r> {
    pub(crate) randomness: &'r mut dyn Randomness,
    work: u64,
    /// Why values are Undefined, if an explanation was requested.
    pub(crate) reasons: Option<Vec<Reason>>,
}

impl<'r> Context<'r> {
    pub(crate) fn new(randomness: &'r mut dyn Randomness, explain: bool) -> Self {
        Self {
            randomness,
            work: WORK_MAX,
            reasons: explain.then(Vec::new),
        }
    }

    fn spend(&mut self, units: u64) -> Result<(), EvaluationError> {
        self.work = self
            .work
            .checked_sub(units)
            .ok_or(EvaluationError::TooMuchWork)?;
        Ok(())
    }

    /// Charges for bytes that will be created or scanned.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        self.spend(u64::try_from(bytes / BYTES_PER_UNIT).unwrap_or(u64::MAX))
    }

    /// The owned value; charges for a copy.
    pub(crate) fn own(&mut self, value: Cow<'_, Value>) -> Result<Value, EvaluationError> {
        if let Cow::Borrowed(borrowed) = &value {
            self.spend_bytes(borrowed.weight())?;
        }
        Ok(value.into_owned())
    }

    /// Checks the nesting of a newly created value.
    pub(crate) fn check_depth(&self, value: Value) -> Result<Value, EvaluationError> {
        if value.depth() > VALUE_DEPTH_MAX {
            return Err(EvaluationError::TooDeep);
        }
        Ok(value)
    }

    pub(crate) fn note(&mut self, span: Span, reason: impl FnOnce() -> Cow<'static, str>) {
        if let Some(reasons) = &mut self.reasons
            && reasons.len() < NOTES_MAX
        {
            reasons.push(Reason {
                span,
                text: reason(),
            });
        }
    }

    /// Converts the result of an operator or function. If an operand was already Undefined, its
    /// reason is the relevant one and no other is recorded.
    fn result_or_undefined<'v>(
        &mut self,
        span: Span,
        undefined_before: bool,
        result: Result<Value, Fault>,
    ) -> Result<Cow<'v, Value>, EvaluationError> {
        match result {
            Ok(value) => Ok(Cow::Owned(value)),
            Err(Fault::Ends(error)) => Err(error),
            Err(Fault::Undefined(reason)) => {
                if !undefined_before {
                    self.note(span, || reason);
                }
                Ok(Cow::Owned(Value::Undefined))
            }
        }
    }

    pub(crate) fn evaluate<'v>(
        &mut self,
        expression: &'v Expression,
        scope: Scope<'v>,
    ) -> Result<Cow<'v, Value>, EvaluationError> {
        self.spend(1)?;
        let span = expression.span;
        match &expression.node {
            Node::Literal(value) => Ok(Cow::Borrowed(value)),
            Node::Whole => Ok(whole(scope)),
            Node::Field(name) => self.field(span, name, scope),
            Node::Variable(place) => Ok(scope
                .variables
                .get(*place)
                .map_or(Cow::Owned(Value::Undefined), Cow::Borrowed)),
            Node::Member(inner, name) => {
                let inner = self.evaluate(inner, scope)?;
                Ok(self.member(span, inner, name))
            }
            Node::Index(inner, index) => {
                let inner = self.evaluate(inner, scope)?;
                let index = self.evaluate(index, scope)?;
                Ok(self.element(span, inner, &index))
            }
            Node::Array(elements) => {
                let mut array = Vec::with_capacity(elements.len());
                for element in elements {
                    let element = self.evaluate(element, scope)?;
                    if !element.is_undefined() {
                        array.push(self.own(element)?);
                    }
                }
                self.check_depth(Value::Array(array)).map(Cow::Owned)
            }
            Node::Object(members) => {
                let mut object = Object::new();
                for (name, value) in members {
                    let value = self.evaluate(value, scope)?;
                    if !value.is_undefined() {
                        object.insert(name.clone(), self.own(value)?);
                    }
                }
                self.check_depth(Value::Object(object)).map(Cow::Owned)
            }
            Node::Negative(operand) => {
                let operand = self.evaluate(operand, scope)?;
                let result = operators::negative(&operand);
                self.result_or_undefined(span, operand.is_undefined(), result)
            }
            Node::Not(operand) => {
                let operand = self.evaluate(operand, scope)?;
                let result = to_boolean(&operand)
                    .map(|truth| Value::Boolean(!truth))
                    .ok_or_else(|| format!("NOT of {}", operand.kind()).into());
                self.result_or_undefined(span, operand.is_undefined(), result)
            }
            Node::Logic(operator, left, right) => {
                let left = self.evaluate(left, scope)?;
                let right = self.evaluate(right, scope)?;
                let undefined = left.is_undefined() || right.is_undefined();
                let result = logic(*operator, &left, &right);
                self.result_or_undefined(span, undefined, result)
            }
            Node::Comparison(operator, left, right) => {
                let left = self.evaluate(left, scope)?;
                let right = self.evaluate(right, scope)?;
                let undefined = left.is_undefined() || right.is_undefined();
                self.spend_bytes(left.weight())?;
                let result = operators::compare(*operator, &left, &right);
                self.result_or_undefined(span, undefined, result)
            }
            Node::Arithmetic(operator, left, right) => {
                let left = self.evaluate(left, scope)?;
                let right = self.evaluate(right, scope)?;
                let undefined = left.is_undefined() || right.is_undefined();
                let result = operators::calculate(*operator, &left, &right, self);
                self.result_or_undefined(span, undefined, result)
            }
            Node::In {
                needle,
                haystack,
                negated,
            } => {
                let needle = self.evaluate(needle, scope)?;
                let haystack = self.evaluate(haystack, scope)?;
                let undefined = needle.is_undefined() || haystack.is_undefined();
                self.spend_bytes(haystack.weight())?;
                let result = operators::contains(&needle, &haystack)
                    .map(|found| Value::Boolean(found != *negated));
                self.result_or_undefined(span, undefined, result)
            }
            Node::Exists(select) => {
                let found = match self.nested(span, select, scope)? {
                    Value::Undefined => false,
                    Value::Array(elements) => !elements.is_empty(),
                    _ => true,
                };
                Ok(Cow::Owned(Value::Boolean(found)))
            }
            Node::Case {
                subject,
                branches,
                otherwise,
            } => self.case(
                span,
                subject.as_deref(),
                branches,
                otherwise.as_deref(),
                scope,
            ),
            Node::Cast(operand, target) => {
                let operand = self.evaluate(operand, scope)?;
                let result = operators::cast(&operand, *target);
                self.result_or_undefined(span, operand.is_undefined(), result)
            }
            Node::Call(call) => self.call(span, call, scope),
            Node::Select(select) => self.nested(span, select, scope).map(Cow::Owned),
        }
    }

    fn field<'v>(
        &mut self,
        span: Span,
        name: &str,
        scope: Scope<'v>,
    ) -> Result<Cow<'v, Value>, EvaluationError> {
        let source = match scope.current {
            Some(current) => current,
            None => scope
                .message
                .payload
                .json()
                .map_err(|error| EvaluationError::NotJson {
                    name: name.to_owned(),
                    source: error.clone(),
                })?,
        };
        Ok(self.member(span, Cow::Borrowed(source), name))
    }

    fn member<'v>(&mut self, span: Span, value: Cow<'v, Value>, name: &str) -> Cow<'v, Value> {
        let kind = value.kind();
        let found = match value {
            Cow::Borrowed(Value::Object(object)) => object.get(name).map(Cow::Borrowed),
            Cow::Owned(Value::Object(mut object)) => object.remove(name).map(Cow::Owned),
            _ => None,
        };
        found.unwrap_or_else(|| {
            if kind != Kind::Undefined {
                self.note(span, || match kind {
                    Kind::Object => format!("there is no `{name}`").into(),
                    _ => format!("{kind} has no member `{name}`").into(),
                });
            }
            Cow::Owned(Value::Undefined)
        })
    }

    fn element<'v>(&mut self, span: Span, value: Cow<'v, Value>, index: &Value) -> Cow<'v, Value> {
        if let (Value::Object(_), Value::String(name)) = (&*value, index) {
            return self.member(span, value, name);
        }
        let kind = value.kind();
        let found = match value {
            Cow::Borrowed(Value::Array(elements)) => {
                to_index(index).and_then(|index| elements.get(index).map(Cow::Borrowed))
            }
            Cow::Owned(Value::Array(mut elements)) => to_index(index)
                .filter(|index| *index < elements.len())
                .map(|index| Cow::Owned(elements.swap_remove(index))),
            _ => None,
        };
        found.unwrap_or_else(|| {
            if kind != Kind::Undefined && !index.is_undefined() {
                self.note(span, || match kind {
                    Kind::Array => format!("the array has no element {}", shown(index)).into(),
                    _ => format!("{kind} has no elements").into(),
                });
            }
            Cow::Owned(Value::Undefined)
        })
    }

    fn case<'v>(
        &mut self,
        span: Span,
        subject: Option<&'v Expression>,
        branches: &'v [(Expression, Expression)],
        otherwise: Option<&'v Expression>,
        scope: Scope<'v>,
    ) -> Result<Cow<'v, Value>, EvaluationError> {
        let subject = match subject {
            Some(subject) => {
                let subject = self.evaluate(subject, scope)?;
                if subject.is_undefined() {
                    return Ok(subject);
                }
                Some(subject)
            }
            None => None,
        };
        for (condition, result) in branches {
            let condition = self.evaluate(condition, scope)?;
            let chosen = match &subject {
                Some(subject) => !condition.is_undefined() && subject.equals(&condition),
                None => to_boolean(&condition) == Some(true),
            };
            if chosen {
                return self.evaluate(result, scope);
            }
        }
        match otherwise {
            Some(otherwise) => self.evaluate(otherwise, scope),
            None => {
                self.note(span, || {
                    "no WHEN condition is true, and there is no ELSE".into()
                });
                Ok(Cow::Owned(Value::Undefined))
            }
        }
    }

    fn call<'v>(
        &mut self,
        span: Span,
        call: &'v Call,
        scope: Scope<'v>,
    ) -> Result<Cow<'v, Value>, EvaluationError> {
        // For the whole payload, `encode` needs the bytes, whether they are JSON or not.
        if call.function == Function::Encode
            && let Some(Node::Whole) = call.arguments.first().map(|argument| &argument.node)
            && scope.current.is_none()
        {
            let bytes = scope.message.payload.bytes();
            self.spend_bytes(bytes.len())?;
            let text = functions::encode::base64(bytes);
            return Ok(Cow::Owned(Value::String(text)));
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.evaluate(argument, scope)?);
        }
        let undefined = arguments.iter().any(|argument| argument.is_undefined());
        let result = functions::call(call, &arguments, scope, self);
        self.result_or_undefined(span, undefined, result)
    }

    fn nested<'v>(
        &mut self,
        span: Span,
        select: &'v Select,
        scope: Scope<'v>,
    ) -> Result<Value, EvaluationError> {
        let source = self.evaluate(&select.source, scope)?;
        match &*source {
            Value::Array(elements) => {
                let mut results = Vec::new();
                for element in elements {
                    let result = self.selected(select, element, scope)?;
                    results.extend(result.filter(|result| !result.is_undefined()));
                }
                self.check_depth(Value::Array(results))
            }
            Value::Object(_) => {
                let result = self.selected(select, &source, scope)?;
                if result.is_none() {
                    self.note(span, || "its WHERE condition is not true".into());
                }
                Ok(result.unwrap_or_default())
            }
            Value::Undefined => Ok(Value::Undefined),
            other => {
                let kind = other.kind();
                self.note(span, || {
                    format!("nothing can be selected from {kind}").into()
                });
                Ok(Value::Undefined)
            }
        }
    }

    /// The value of a nested SELECT; `None` if its condition is not true.
    fn selected<'v>(
        &mut self,
        select: &'v Select,
        current: &'v Value,
        scope: Scope<'v>,
    ) -> Result<Option<Value>, EvaluationError> {
        let scope = Scope {
            current: Some(current),
            ..scope
        };
        if let Some(condition) = &select.condition {
            let truth = self.evaluate(condition, scope)?;
            if to_boolean(&truth) != Some(true) {
                return Ok(None);
            }
        }
        select::select(&select.selection, scope, self).map(Some)
    }
}

/// The source of the SELECT: the payload as JSON or else as bytes, or the source of a nested
/// SELECT.
pub(crate) fn whole(scope: Scope<'_>) -> Cow<'_, Value> {
    match scope.current {
        Some(current) => Cow::Borrowed(current),
        None => match scope.message.payload.json() {
            Ok(json) => Cow::Borrowed(json),
            Err(_) => Cow::Owned(Value::Bytes(scope.message.payload.bytes().to_vec())),
        },
    }
}

pub(crate) fn logic(operator: Logic, left: &Value, right: &Value) -> Result<Value, Fault> {
    // One false operand decides AND and one true operand decides OR, whatever the other is: rules
    // use `isUndefined(x) OR x > 5`.
    let deciding_value = operator == Logic::Or;
    match (to_boolean(left), to_boolean(right)) {
        (Some(truth), _) | (_, Some(truth)) if truth == deciding_value => {
            Ok(Value::Boolean(deciding_value))
        }
        (Some(_), Some(_)) => Ok(Value::Boolean(!deciding_value)),
        _ => Err(format!("AND or OR of {} and {}", left.kind(), right.kind()).into()),
    }
}

/// A value as reasons show it: truncated JSON.
pub(crate) fn shown(value: &Value) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    if value.is_undefined() {
        return "Undefined".to_owned();
    }
    if value.weight() > 10_000 {
        return value.kind().to_string();
    }
    let json = value.to_json();
    match json.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &json[..end]),
        None => json,
    }
}
