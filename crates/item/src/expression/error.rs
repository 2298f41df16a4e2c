//! Expression errors, with DynamoDB's messages.

use std::fmt;

use super::path::{Path, PathElement};
use crate::schema::KeyError;
use crate::value::{Value, ValueKind};

/// The kind of an expression, which messages name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpressionKind {
    Condition,
    Filter,
    KeyCondition,
    Projection,
    Update,
}

impl fmt::Display for ExpressionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Condition => "ConditionExpression",
            Self::Filter => "FilterExpression",
            Self::KeyCondition => "KeyConditionExpression",
            Self::Projection => "ProjectionExpression",
            Self::Update => "UpdateExpression",
        })
    }
}

/// Why an expression is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    #[error("Invalid {kind}: {problem}")]
    Invalid {
        kind: ExpressionKind,
        problem: ExpressionProblem,
    },
    /// The condition is well-formed, but not usable as a key condition.
    #[error(transparent)]
    KeyCondition(#[from] KeyConditionError),
}

/// A mistake in an expression of any kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionProblem {
    #[error("The expression can not be empty;")]
    Empty,
    #[error("Expression size has exceeded the maximum allowed size; expression size: {0}")]
    TooLong(usize),
    /// For updates, DynamoDB's message does not contain the size.
    #[error("Expression size has exceeded the maximum allowed size;")]
    UpdateTooLong,
    #[error("Syntax error; token: \"{token}\", near: \"{near}\"")]
    Syntax { token: String, near: String },
    #[error("The expression contains too many operators; operator count: {0}")]
    TooManyOperators(usize),
    #[error("The expression is nested too deeply; nesting levels allowed: {0}")]
    TooDeep(usize),
    #[error("The expression has redundant parentheses;")]
    RedundantParentheses,
    #[error("Attribute name is a reserved keyword; reserved keyword: {0}")]
    ReservedKeyword(String),
    #[error(
        "An expression attribute name used in the document path is not defined; attribute name: {0}"
    )]
    UndefinedName(String),
    #[error(
        "An expression attribute value used in expression is not defined; attribute value: {0}"
    )]
    UndefinedValue(String),
    #[error("List index is not within the allowable range; index: [{0}]")]
    ListIndex(String),
    #[error("The document path has too many nesting levels; nesting levels: {0}")]
    PathTooDeep(usize),
    #[error("Invalid function name; function: {0}")]
    UnknownFunction(String),
    #[error("The function is not allowed in a condition expression; function: {0}")]
    NotInConditions(String),
    #[error("The function is not allowed in an update expression; function: {0}")]
    NotInUpdates(String),
    #[error("The function is not allowed to be used this way in an expression; function: {0}")]
    MisusedFunction(String),
    #[error(
        "Incorrect number of operands for operator or function; operator or function: {operator}, number of operands: {count}"
    )]
    OperandCount { operator: String, count: usize },
    #[error(
        "Incorrect operand type for operator or function; operator or function: {operator}, operand type: {found}"
    )]
    OperandType {
        operator: &'static str,
        found: &'static str,
    },
    /// `OperandType` for the actions of an update, for which DynamoDB has another wording.
    #[error(
        "Incorrect operand type for operator or function; operator: {action}, operand type: {found}, typeSet: ALLOWED_FOR_{action}_OPERAND"
    )]
    ActionType {
        action: &'static str,
        found: &'static str,
    },
    #[error("Operator or function requires a document path; operator or function: {0}")]
    PathRequired(&'static str),
    #[error(
        "The first operand must be distinct from the remaining operands for this operator or function; operator: {operator}, first operand: {path}"
    )]
    NotDistinct {
        operator: &'static str,
        path: ListedPath,
    },
    #[error(
        "Invalid attribute type name found; type: {0}, valid types: {{B,NULL,SS,BOOL,L,BS,N,NS,S,M}}"
    )]
    TypeName(String),
    #[error(
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: {lower}, upper bound operand: {upper}"
    )]
    BoundsReversed {
        lower: QuotedValue,
        upper: QuotedValue,
    },
    #[error(
        "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: {lower}, upper bound operand: {upper}"
    )]
    BoundTypesDiffer {
        lower: QuotedValue,
        upper: QuotedValue,
    },
    #[error("The IN operator is provided with too many operands; number of operands: {0}")]
    TooManyChoices(usize),
    #[error("The \"{0}\" section can only be used once in an update expression;")]
    DuplicateSection(&'static str),
    #[error(
        "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: {one}, path two: {two}"
    )]
    Overlap { one: ListedPath, two: ListedPath },
    #[error(
        "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: {one}, path two: {two}"
    )]
    Conflict { one: ListedPath, two: ListedPath },
    /// Possible only in a tree built in code, never in a text.
    #[error(
        "The operand of an addition, subtraction or function can not be another addition or subtraction;"
    )]
    NestedArithmetic,
}

/// Why a condition is not a valid key condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyConditionError {
    #[error("Invalid operator used in KeyConditionExpression: {0}")]
    Operator(&'static str),
    #[error(
        "Invalid condition in KeyConditionExpression: {0} operator must have the key attribute as its first operand"
    )]
    KeyNotFirst(&'static str),
    #[error(
        "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"
    )]
    MultipleNames,
    #[error("Invalid condition in KeyConditionExpression: No key attribute specified")]
    NoName,
    #[error("KeyConditionExpressions cannot contain nested operations")]
    NestedOperation,
    #[error("KeyConditionExpressions cannot have conditions on nested attributes")]
    NestedAttribute,
    #[error(
        "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key"
    )]
    DuplicateCondition,
    #[error("Conditions can be of length 1 or 2 only")]
    TooManyConditions,
    #[error(
        "The number of query conditions ({given}) exceeds the number of key attributes defined in the schema ({keys})"
    )]
    MoreThanKeys { given: usize, keys: usize },
    #[error("Query condition missed key schema element: {0}")]
    MissingKeyElement(String),
    #[error("HASH key attributes {0} must have equality conditions specified in the query")]
    PartitionKeyNotEqual(String),
    #[error(
        "RANGE key attributes {lacking} must have equality conditions specified in the query because a condition is present on key attribute {last}"
    )]
    Gap { lacking: String, last: String },
    #[error("Query key condition not supported")]
    NotSupported,
    #[error(
        "One or more parameter values were invalid: Condition parameter type does not match schema type"
    )]
    WrongKind,
    #[error(
        "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to lower bound"
    )]
    BoundsReversed,
    #[error(
        "Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"
    )]
    NumberPrefix,
    #[error(transparent)]
    Key(KeyError),
}

/// A path as messages show it: `[a, b, [3]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPath(pub Path);

impl fmt::Display for ListedPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}", self.0.name())?;
        for element in self.0.nested() {
            match element {
                PathElement::Name(name) => write!(formatter, ", {name}")?,
                PathElement::Index(index) => write!(formatter, ", [{index}]")?,
            }
        }
        formatter.write_str("]")
    }
}

/// A scalar as messages show it: `AttributeValue: {N:5}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotedValue(pub Value);

impl fmt::Display for QuotedValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use base64::Engine as _;
        write!(formatter, "AttributeValue: {{{}:", self.0.kind().name())?;
        match &self.0 {
            Value::S(text) => formatter.write_str(text)?,
            Value::N(number) => write!(formatter, "{number}")?,
            Value::B(bytes) => {
                formatter.write_str(&base64::engine::general_purpose::STANDARD.encode(bytes))?;
            }
            // Bounds are strings, numbers or binaries; the parser rejects other types.
            _ => {}
        }
        formatter.write_str("}")
    }
}

/// The long type name that only the messages about ADD and DELETE use.
pub(super) fn long_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::S => "STRING",
        ValueKind::N => "NUMBER",
        ValueKind::B => "BINARY",
        ValueKind::Bool => "BOOLEAN",
        ValueKind::Null => "NULL",
        ValueKind::M => "MAP",
        ValueKind::L => "LIST",
        ValueKind::Ss => "STRING_SET",
        ValueKind::Ns => "NUMBER_SET",
        ValueKind::Bs => "BINARY_SET",
    }
}
