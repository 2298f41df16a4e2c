//! Parses statements: SET, SELECT, FROM and WHERE. Expressions are parsed in `expression`.

use crate::evaluate::functions::Function;
use crate::parse::syntax_error::SyntaxError;
use crate::parse::token::{Token, TokenKind, next_token};
use crate::parse::tree::{Expression, Node, Select, SelectItem, Selected, Selection, Span};
use crate::topic::TopicFilter;

/// Maximum length of a statement or a template.
pub const TEXT_LEN_MAX_BYTES: usize = 32 * 1024;
/// Maximum nesting of expressions.
pub const EXPRESSION_DEPTH_MAX: usize = 64;
/// Maximum number of names in a dotted alias.
pub const ALIAS_DEPTH_MAX: usize = 16;
/// Maximum number of values in one SELECT.
pub const SELECT_ITEMS_MAX: usize = 500;
/// Maximum number of variables that SET may define.
pub const VARIABLES_MAX: usize = 32;
/// Maximum number of characters in a variable's name, as in AWS IoT.
pub const VARIABLE_NAME_CHARS_MAX: usize = 64;

/// Words that are field names only after a point or in back-quotes.
const RESERVED: [&str; 17] = [
    "AND", "AS", "CASE", "ELSE", "END", "FALSE", "FROM", "IN", "NOT", "NULL", "OR", "SELECT",
    "SET", "THEN", "TRUE", "WHEN", "WHERE",
];

/// The parsed parts of a statement.
#[derive(Debug, Clone)]
pub(crate) struct StatementParts {
    pub(crate) variables: Vec<Variable>,
    pub(crate) selection: Selection,
    pub(crate) filter: TopicFilter,
    pub(crate) filter_span: Span,
    pub(crate) condition: Option<Expression>,
}

#[derive(Debug, Clone)]
pub(crate) struct Variable {
    /// The name without the `@`.
    pub(crate) name: String,
    pub(crate) expression: Expression,
}

pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) token: Token<'a>,
    /// The end of the previous token.
    pub(crate) last_end: usize,
    /// The variables defined so far.
    pub(crate) variables: Vec<String>,
    /// The current nesting of expressions.
    pub(crate) depth: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, start: usize, variables: Vec<String>) -> Self {
        Self {
            text,
            token: next_token(text, start),
            last_end: start,
            variables,
            depth: 0,
        }
    }

    pub(crate) fn statement(mut self) -> Result<StatementParts, SyntaxError> {
        let variables = self.set_clause()?;
        self.expect_keyword("SELECT")?;
        let selection = self.selection()?;
        self.expect_keyword("FROM")?;
        let filter_start = self.token.start;
        let filter = self.filter()?;
        let filter_span = Span {
            start: filter_start,
            end: self.last_end,
        };
        let condition = self.condition()?;
        if self.token.is_sign(";") {
            self.advance();
        }
        if self.token.kind != TokenKind::End {
            let expected = if condition.is_some() {
                "an operator or the end of the statement"
            } else {
                "WHERE or the end of the statement"
            };
            return Err(self.unexpected(expected));
        }
        Ok(StatementParts {
            variables,
            selection,
            filter,
            filter_span,
            condition,
        })
    }

    fn set_clause(&mut self) -> Result<Vec<Variable>, SyntaxError> {
        let mut variables: Vec<Variable> = Vec::new();
        if !self.accept_keyword("SET") {
            return Ok(variables);
        }
        loop {
            let token = self.token;
            if token.kind != TokenKind::Variable {
                return Err(self.unexpected("a variable such as @name"));
            }
            let name = &token.text[1..];
            if name.chars().count() > VARIABLE_NAME_CHARS_MAX {
                let expected = format!("a name of at most {VARIABLE_NAME_CHARS_MAX} characters");
                return Err(self.unexpected(expected));
            }
            if self.variables.iter().any(|known| known == name) {
                return Err(self.unexpected("a variable that has no value yet"));
            }
            if variables.len() == VARIABLES_MAX {
                return Err(self.unexpected(format!("at most {VARIABLES_MAX} variables")));
            }
            self.advance();
            self.expect_sign("=")?;
            let expression = self.expression()?;
            // A variable can be used after its definition, not within it.
            self.variables.push(name.to_owned());
            variables.push(Variable {
                name: name.to_owned(),
                expression,
            });
            if !self.accept_sign(",") {
                return Ok(variables);
            }
        }
    }

    fn filter(&mut self) -> Result<TopicFilter, SyntaxError> {
        let token = self.token;
        if token.kind != TokenKind::Text {
            return Err(self.unexpected("a topic filter in quotes"));
        }
        let filter = TopicFilter::parse(&token.unquoted()).map_err(|error| {
            self.error_at(
                token.start,
                "a valid topic filter",
                format!("{}: {error}", token.describe()),
            )
        })?;
        self.advance();
        Ok(filter)
    }

    fn condition(&mut self) -> Result<Option<Expression>, SyntaxError> {
        if self.accept_keyword("WHERE") {
            self.expression().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Parses a nested SELECT after its keyword. Its source is a value instead of a topic.
    pub(crate) fn nested_select(&mut self) -> Result<Select, SyntaxError> {
        let selection = self.selection()?;
        self.expect_keyword("FROM")?;
        let source = self.source()?;
        let condition = self.condition()?;
        Ok(Select {
            selection,
            source,
            condition,
        })
    }

    fn selection(&mut self) -> Result<Selection, SyntaxError> {
        if self.token.is_keyword("VALUE") && self.value_is_keyword() {
            self.advance();
            let selected = self.selected()?;
            if self.token.is_keyword("AS") || self.token.is_sign(",") {
                return Err(self.unexpected("FROM: SELECT VALUE selects one thing, without a name"));
            }
            return Ok(Selection::Value(selected));
        }
        let mut items = Vec::new();
        loop {
            if items.len() == SELECT_ITEMS_MAX {
                return Err(self.unexpected(format!("at most {SELECT_ITEMS_MAX} things to select")));
            }
            items.push(self.item()?);
            if !self.accept_sign(",") {
                break;
            }
        }
        if !self.token.is_keyword("FROM") {
            return Err(self.unexpected("an operator, AS, a comma or FROM"));
        }
        Ok(Selection::Items(items))
    }

    /// Whether VALUE at the current token is the keyword instead of a field: an expression follows
    /// it.
    fn value_is_keyword(&self) -> bool {
        let next = self.peek();
        match next.kind {
            TokenKind::Text | TokenKind::Number | TokenKind::Variable | TokenKind::QuotedName => {
                true
            }
            TokenKind::Word => {
                !RESERVED.iter().any(|word| next.is_keyword(word))
                    || ["CASE", "NOT", "NULL", "TRUE", "FALSE"]
                        .iter()
                        .any(|word| next.is_keyword(word))
            }
            TokenKind::Sign => match next.text {
                "(" | "[" | "{" => true,
                "*" => next_token(self.text, next.end()).is_keyword("FROM"),
                // `VALUE -x` is a negative number; `value - x` and `value-x` are differences.
                "-" => {
                    next.start > self.token.end()
                        && next_token(self.text, next.end()).start == next.end()
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn selected(&mut self) -> Result<Selected, SyntaxError> {
        if self.accept_sign("*") {
            return Ok(Selected::Everything);
        }
        let expression = self.expression()?;
        let path = matches!(
            expression.node,
            Node::Field(_) | Node::Member(..) | Node::Index(..) | Node::Variable(_) | Node::Call(_)
        );
        if path && self.at_members() {
            self.advance();
            self.advance();
            return Ok(Selected::Members(expression));
        }
        Ok(Selected::Expression(expression))
    }

    fn item(&mut self) -> Result<SelectItem, SyntaxError> {
        let selected = self.selected()?;
        let has_alias = self.accept_keyword("AS");
        let path = if has_alias {
            self.alias()?
        } else {
            match &selected {
                Selected::Everything | Selected::Members(_) => Vec::new(),
                Selected::Expression(expression) => vec![self.default_name(expression)],
            }
        };
        Ok(SelectItem {
            selected,
            path,
            has_alias,
        })
    }

    fn alias(&mut self) -> Result<Vec<String>, SyntaxError> {
        let mut path = vec![self.alias_name()?];
        while self.accept_sign(".") {
            if path.len() == ALIAS_DEPTH_MAX {
                return Err(self.unexpected(format!("at most {ALIAS_DEPTH_MAX} names in an alias")));
            }
            path.push(self.alias_name()?);
        }
        Ok(path)
    }

    fn alias_name(&mut self) -> Result<String, SyntaxError> {
        let token = self.token;
        let name = match token.kind {
            TokenKind::Word => token.text.to_owned(),
            TokenKind::Text | TokenKind::QuotedName => token.unquoted(),
            _ => return Err(self.unexpected("a name")),
        };
        if name.is_empty() {
            return Err(self.unexpected("a name that is not empty"));
        }
        self.advance();
        Ok(name)
    }

    /// The name of a value selected without an alias: a field's or function's name, otherwise the
    /// text itself.
    fn default_name(&self, expression: &Expression) -> String {
        match &expression.node {
            Node::Field(name) | Node::Member(_, name) => name.clone(),
            Node::Call(_) => next_token(self.text, expression.span.start).text.to_owned(),
            _ => self.text[expression.span.start..expression.span.end].to_owned(),
        }
    }

    /// Whether `.*` follows, which selects all members of the preceding value.
    pub(crate) fn at_members(&self) -> bool {
        self.token.is_sign(".") && self.peek().is_sign("*")
    }

    pub(crate) fn is_reserved(token: &Token<'_>) -> bool {
        RESERVED.iter().any(|word| token.is_keyword(word))
    }

    pub(crate) fn advance(&mut self) {
        self.last_end = self.token.end();
        self.token = next_token(self.text, self.last_end);
    }

    pub(crate) fn peek(&self) -> Token<'a> {
        next_token(self.text, self.token.end())
    }

    pub(crate) fn accept_sign(&mut self, sign: &str) -> bool {
        let accepted = self.token.is_sign(sign);
        if accepted {
            self.advance();
        }
        accepted
    }

    pub(crate) fn accept_keyword(&mut self, keyword: &str) -> bool {
        let accepted = self.token.is_keyword(keyword);
        if accepted {
            self.advance();
        }
        accepted
    }

    pub(crate) fn expect_sign(&mut self, sign: &str) -> Result<(), SyntaxError> {
        if self.accept_sign(sign) {
            Ok(())
        } else {
            Err(self.unexpected(format!("`{sign}`")))
        }
    }

    pub(crate) fn expect_keyword(&mut self, keyword: &str) -> Result<(), SyntaxError> {
        if self.accept_keyword(keyword) {
            Ok(())
        } else {
            Err(self.unexpected(keyword))
        }
    }

    pub(crate) fn unexpected(&self, expected: impl Into<String>) -> SyntaxError {
        let mut found = self.token.describe();
        if let Some(hint) = hint(&self.token) {
            found = format!("{found}: {hint}");
        }
        self.error_at(self.token.start, expected, found)
    }

    pub(crate) fn error_at(
        &self,
        offset: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> SyntaxError {
        SyntaxError::new(self.text, offset, expected, found)
    }

    /// Creates an expression that spans from `start` to the end of the last token.
    pub(crate) fn node(
        &self,
        start: usize,
        depth: usize,
        node: Node,
    ) -> Result<Expression, SyntaxError> {
        // A chain of operators creates a deep tree without recursion in the parser.
        if depth > EXPRESSION_DEPTH_MAX {
            return Err(self.too_deep(start));
        }
        Ok(Expression {
            span: Span {
                start,
                end: self.last_end,
            },
            depth,
            node,
        })
    }

    pub(crate) fn too_deep(&self, start: usize) -> SyntaxError {
        self.error_at(
            start,
            format!("at most {EXPRESSION_DEPTH_MAX} expressions within one another"),
            "more",
        )
    }

    /// The function with the name in the token.
    pub(crate) fn function(&self, token: &Token<'_>) -> Result<Function, SyntaxError> {
        let name = token.text.to_ascii_lowercase();
        if let Some(function) = Function::by_name(&name) {
            return Ok(function);
        }
        let expected = Function::unsupported_reason(&name).unwrap_or("a function of AWS IoT SQL");
        Err(self.error_at(token.start, expected, format!("`{}`", token.text)))
    }
}

/// What to write instead of syntax from other languages or characters from word processors.
fn hint(token: &Token<'_>) -> Option<&'static str> {
    Some(match token.text.to_ascii_uppercase().as_str() {
        "LIKE" => "use startswith(), endswith() or regexp_matches()",
        "BETWEEN" => "use >= and <=",
        "IS" => "use isNull() or isUndefined()",
        "GROUP" | "ORDER" | "LIMIT" | "HAVING" | "JOIN" => "a statement looks at one message",
        "=" => "one = compares",
        "|" => "+ joins texts",
        "&" => "use AND",
        "!" => "use NOT, or <>",
        "\u{2013}" | "\u{2014}" | "\u{2212}" => "the minus sign is -",
        "\u{2018}" | "\u{2019}" | "\u{201c}" | "\u{201d}" => "quotes are ' or \"",
        _ => return None,
    })
}
