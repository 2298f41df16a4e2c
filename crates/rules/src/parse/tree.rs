//! The tree of a statement. Every expression has its position in the text and its depth.

use regex::Regex;

use crate::evaluate::functions::Function;
use crate::value::Value;

/// A part of the text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(crate) span: Span,
    /// The nesting of expressions, including this one, which bounds recursion over the tree.
    pub(crate) depth: usize,
    pub(crate) node: Node,
}

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Literal(Value),
    /// `*` as an argument: the whole source.
    Whole,
    /// A member of the source.
    Field(String),
    /// The index of a variable among those that SET defines.
    Variable(usize),
    Member(Box<Expression>, String),
    Index(Box<Expression>, Box<Expression>),
    Array(Vec<Expression>),
    Object(Vec<(String, Expression)>),
    Negative(Box<Expression>),
    Not(Box<Expression>),
    Logic(Logic, Box<Expression>, Box<Expression>),
    Comparison(Comparison, Box<Expression>, Box<Expression>),
    Arithmetic(Arithmetic, Box<Expression>, Box<Expression>),
    In {
        needle: Box<Expression>,
        haystack: Box<Expression>,
        negated: bool,
    },
    Exists(Box<Select>),
    Case {
        subject: Option<Box<Expression>>,
        branches: Vec<(Expression, Expression)>,
        otherwise: Option<Box<Expression>>,
    },
    Cast(Box<Expression>, CastType),
    Call(Call),
    Select(Box<Select>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CastType {
    Text,
    Int,
    Decimal,
    /// A number converted to binary floating point.
    Double,
    Boolean,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) function: Function,
    pub(crate) arguments: Vec<Expression>,
    /// The compiled form of a literal regular expression.
    pub(crate) pattern: Option<Regex>,
}

/// A SELECT within an expression.
#[derive(Debug, Clone)]
pub(crate) struct Select {
    pub(crate) selection: Selection,
    pub(crate) source: Expression,
    pub(crate) condition: Option<Expression>,
}

#[derive(Debug, Clone)]
pub(crate) enum Selection {
    /// `SELECT VALUE`: one value instead of an object.
    Value(Selected),
    Items(Vec<SelectItem>),
}

#[derive(Debug, Clone)]
pub(crate) enum Selected {
    /// `*`
    Everything,
    /// `path.*`
    Members(Expression),
    Expression(Expression),
}

#[derive(Debug, Clone)]
pub(crate) struct SelectItem {
    pub(crate) selected: Selected,
    /// The path of the value in the result: empty for a bare `*`, otherwise a name, or several for
    /// a dotted alias.
    pub(crate) path: Vec<String>,
    /// Whether the statement sets the name with AS.
    pub(crate) has_alias: bool,
}
