//! A statement's tree. Every expression knows its place in the text and how deep it is.

use regex::Regex;

use crate::functions::Function;
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
    /// How many expressions stand within one another, this one included. A recursion over the tree
    /// goes no deeper.
    pub(crate) depth: usize,
    pub(crate) node: Node,
}

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Literal(Value),
    /// `*` as an argument: what is selected from, as a whole.
    Whole,
    /// A member of what is selected from.
    Field(String),
    /// The place of a variable among those that SET defines.
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
    /// A decimal as exact as a binary floating-point number.
    Double,
    Boolean,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) function: Function,
    pub(crate) arguments: Vec<Expression>,
    /// A regular expression that is written in the statement is compiled with it.
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
    /// Where the value goes: nothing for a bare `*`, otherwise a name, or several for a dotted alias.
    pub(crate) path: Vec<String>,
    /// Whether the statement gives the name, with AS.
    pub(crate) has_alias: bool,
}
