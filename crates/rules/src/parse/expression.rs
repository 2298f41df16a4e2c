//! Parses expressions by precedence climbing: operators that bind tighter are parsed deeper in the
//! recursion.

use crate::evaluate::functions::Function;
use crate::evaluate::functions::regular_expression;
use crate::evaluate::functions::time::check_pattern;
use crate::parse::statement::{EXPRESSION_DEPTH_MAX, Parser};
use crate::parse::syntax_error::SyntaxError;
use crate::parse::token::TokenKind;
use crate::parse::tree::{
    Arithmetic, Call, CastType, Comparison, Expression, Logic, Node, Select, Selected, Selection,
};
use crate::value::Value;
use homeport_item::Decimal;

/// Binding powers of operators, from the loosest.
mod power {
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const NOT: u8 = 3;
    pub(super) const COMPARISON: u8 = 4;
    pub(super) const SUM: u8 = 5;
    pub(super) const PRODUCT: u8 = 6;
    pub(super) const NEGATIVE: u8 = 7;
}

/// A binary operator.
enum Infix {
    Logic(Logic),
    Comparison(Comparison),
    Arithmetic(Arithmetic),
    In { negated: bool },
}

impl Parser<'_> {
    pub(crate) fn expression(&mut self) -> Result<Expression, SyntaxError> {
        self.binding(0)
    }

    /// Parses an expression of operators that bind tighter than `outer`.
    fn binding(&mut self, outer: u8) -> Result<Expression, SyntaxError> {
        if self.depth == EXPRESSION_DEPTH_MAX {
            return Err(self.too_deep(self.token.start));
        }
        self.depth += 1;
        let result = self.binding_within(outer);
        self.depth -= 1;
        result
    }

    fn binding_within(&mut self, outer: u8) -> Result<Expression, SyntaxError> {
        let mut left = self.prefix()?;
        while let Some((infix, binds)) = self.infix() {
            if binds <= outer {
                break;
            }
            if matches!(infix, Infix::In { negated: true }) {
                self.advance();
            }
            self.advance();
            let right = match infix {
                Infix::In { .. } => self.haystack()?,
                _ => self.binding(binds)?,
            };
            let start = left.span.start;
            let depth = left.depth.max(right.depth) + 1;
            let (left_box, right_box) = (Box::new(left), Box::new(right));
            let node = match infix {
                Infix::Logic(operator) => Node::Logic(operator, left_box, right_box),
                Infix::Comparison(operator) => Node::Comparison(operator, left_box, right_box),
                Infix::Arithmetic(operator) => Node::Arithmetic(operator, left_box, right_box),
                Infix::In { negated } => Node::In {
                    needle: left_box,
                    haystack: right_box,
                    negated,
                },
            };
            left = self.node(start, depth, node)?;
        }
        Ok(left)
    }

    /// The binary operator at the current token and its binding power.
    fn infix(&self) -> Option<(Infix, u8)> {
        let token = &self.token;
        match token.kind {
            TokenKind::Word if token.is_keyword("AND") => {
                Some((Infix::Logic(Logic::And), power::AND))
            }
            TokenKind::Word if token.is_keyword("OR") => Some((Infix::Logic(Logic::Or), power::OR)),
            TokenKind::Word if token.is_keyword("IN") => {
                Some((Infix::In { negated: false }, power::COMPARISON))
            }
            TokenKind::Word if token.is_keyword("NOT") && self.peek().is_keyword("IN") => {
                Some((Infix::In { negated: true }, power::COMPARISON))
            }
            TokenKind::Sign => {
                let comparison = |operator| (Infix::Comparison(operator), power::COMPARISON);
                let sum = |operator| (Infix::Arithmetic(operator), power::SUM);
                let product = |operator| (Infix::Arithmetic(operator), power::PRODUCT);
                Some(match token.text {
                    "=" => comparison(Comparison::Equal),
                    "<>" | "!=" => comparison(Comparison::NotEqual),
                    "<" => comparison(Comparison::Less),
                    "<=" => comparison(Comparison::LessOrEqual),
                    ">" => comparison(Comparison::Greater),
                    ">=" => comparison(Comparison::GreaterOrEqual),
                    "+" => sum(Arithmetic::Add),
                    "-" => sum(Arithmetic::Subtract),
                    "*" => product(Arithmetic::Multiply),
                    "/" => product(Arithmetic::Divide),
                    "%" => product(Arithmetic::Remainder),
                    _ => return None,
                })
            }
            _ => None,
        }
    }

    fn prefix(&mut self) -> Result<Expression, SyntaxError> {
        let start = self.token.start;
        if self.accept_keyword("NOT") {
            let operand = self.binding(power::NOT)?;
            let depth = operand.depth + 1;
            return self.node(start, depth, Node::Not(Box::new(operand)));
        }
        if self.accept_sign("-") {
            let operand = self.binding(power::NEGATIVE)?;
            let depth = operand.depth + 1;
            return match operand.node {
                Node::Literal(Value::Int(number)) => {
                    self.node(start, 1, Node::Literal(Value::Int(number.negated())))
                }
                Node::Literal(Value::Decimal(number)) => {
                    self.node(start, 1, Node::Literal(Value::Decimal(number.negated())))
                }
                _ => self.node(start, depth, Node::Negative(Box::new(operand))),
            };
        }
        self.postfix()
    }

    /// Parses the source of a nested SELECT: a path, a variable or a call, without operators.
    pub(crate) fn source(&mut self) -> Result<Expression, SyntaxError> {
        if self.depth == EXPRESSION_DEPTH_MAX {
            return Err(self.too_deep(self.token.start));
        }
        self.depth += 1;
        let result = self.postfix();
        self.depth -= 1;
        result
    }

    /// Parses the right side of IN: an array, or values in parentheses.
    fn haystack(&mut self) -> Result<Expression, SyntaxError> {
        let start = self.token.start;
        if !self.token.is_sign("(") || self.peek().is_keyword("SELECT") {
            return self.binding(power::COMPARISON);
        }
        self.advance();
        let elements = self.list(")")?;
        // A single value in parentheses is that value, which may itself be an array.
        if let [element] = &elements[..]
            && !matches!(element.node, Node::Literal(_))
        {
            return Ok(element.clone());
        }
        let depth = depth_of(&elements) + 1;
        self.node(start, depth, Node::Array(elements))
    }

    fn postfix(&mut self) -> Result<Expression, SyntaxError> {
        let start = self.token.start;
        let mut operand = self.primary()?;
        loop {
            if self.at_members() {
                // Only SELECT can handle it.
                return Ok(operand);
            } else if self.accept_sign(".") {
                for name in self.member_names()? {
                    let depth = operand.depth + 1;
                    operand = self.node(start, depth, Node::Member(Box::new(operand), name))?;
                }
            } else if self.accept_sign("[") {
                let index = self.expression()?;
                self.expect_sign("]")?;
                let depth = operand.depth.max(index.depth) + 1;
                let node = Node::Index(Box::new(operand), Box::new(index));
                operand = self.node(start, depth, node)?;
            } else {
                return Ok(operand);
            }
        }
    }

    /// Parses the member names after a point. Any word is valid, and digits too, which may be two
    /// names at once: `a.1.2` contains the number 1.2.
    fn member_names(&mut self) -> Result<Vec<String>, SyntaxError> {
        let token = self.token;
        let names = match token.kind {
            TokenKind::Word => vec![token.text.to_owned()],
            TokenKind::Text | TokenKind::QuotedName => vec![token.unquoted()],
            TokenKind::Number if !token.text.contains(['e', 'E']) => {
                token.text.split('.').map(str::to_owned).collect()
            }
            _ => return Err(self.unexpected("a member's name")),
        };
        self.advance();
        Ok(names)
    }

    fn primary(&mut self) -> Result<Expression, SyntaxError> {
        let token = self.token;
        let start = token.start;
        match token.kind {
            TokenKind::Text => {
                self.advance();
                self.node(start, 1, Node::Literal(Value::String(token.unquoted())))
            }
            TokenKind::Number => {
                let number = Decimal::parse(token.text).map_err(|error| {
                    self.error_at(start, "a number in range", error.to_string())
                })?;
                self.advance();
                // DIFFERENCE: AWS IoT treats 2.0 as an Int. An author who writes the point expects
                // a division by it to have decimals.
                let value = if token.text.contains('.') {
                    Value::Decimal(number)
                } else {
                    Value::number(number)
                };
                self.node(start, 1, Node::Literal(value))
            }
            TokenKind::Variable => {
                let name = &token.text[1..];
                let place = self.variables.iter().position(|known| known == name);
                let Some(place) = place else {
                    return Err(self.unexpected("a variable that SET has defined before"));
                };
                self.advance();
                self.node(start, 1, Node::Variable(place))
            }
            TokenKind::QuotedName => {
                self.advance();
                self.node(start, 1, Node::Field(token.unquoted()))
            }
            TokenKind::Word => self.word(),
            TokenKind::Sign => match token.text {
                "(" => self.parenthesis(),
                "[" => {
                    self.advance();
                    let elements = self.list("]")?;
                    let depth = depth_of(&elements) + 1;
                    self.node(start, depth, Node::Array(elements))
                }
                "{" => self.object(),
                _ => Err(self.unexpected("an expression")),
            },
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn word(&mut self) -> Result<Expression, SyntaxError> {
        let token = self.token;
        let start = token.start;
        let called = self.peek().is_sign("(");
        let literal = match token.text.to_ascii_lowercase().as_str() {
            "true" => Some(Value::Boolean(true)),
            "false" => Some(Value::Boolean(false)),
            "null" => Some(Value::Null),
            _ => None,
        };
        if let Some(value) = literal {
            self.advance();
            return self.node(start, 1, Node::Literal(value));
        }
        if token.is_keyword("CASE") {
            return self.case();
        }
        if Self::is_reserved(&token) {
            return Err(self.unexpected("an expression"));
        }
        if !called {
            self.advance();
            return self.node(start, 1, Node::Field(token.text.to_owned()));
        }
        if token.is_keyword("EXISTS") {
            self.advance();
            self.expect_sign("(")?;
            self.expect_keyword("SELECT")?;
            let select = self.nested_select()?;
            self.expect_sign(")")?;
            let depth = depth_of_select(&select) + 1;
            return self.node(start, depth, Node::Exists(Box::new(select)));
        }
        if token.is_keyword("CAST") {
            return self.cast();
        }
        self.call()
    }

    fn parenthesis(&mut self) -> Result<Expression, SyntaxError> {
        let start = self.token.start;
        self.advance();
        if self.accept_keyword("SELECT") {
            let select = self.nested_select()?;
            self.expect_sign(")")?;
            let depth = depth_of_select(&select) + 1;
            return self.node(start, depth, Node::Select(Box::new(select)));
        }
        let inner = self.expression()?;
        self.expect_sign(")")?;
        self.node(start, inner.depth, inner.node)
    }

    /// Parses comma-separated expressions up to the closing sign.
    fn list(&mut self, close: &str) -> Result<Vec<Expression>, SyntaxError> {
        let mut elements = Vec::new();
        if self.accept_sign(close) {
            return Ok(elements);
        }
        loop {
            elements.push(self.expression()?);
            if self.accept_sign(close) {
                return Ok(elements);
            }
            if !self.accept_sign(",") {
                return Err(self.unexpected(format!("an operator, a comma or `{close}`")));
            }
        }
    }

    fn object(&mut self) -> Result<Expression, SyntaxError> {
        let start = self.token.start;
        self.advance();
        let mut members: Vec<(String, Expression)> = Vec::new();
        if !self.accept_sign("}") {
            loop {
                let token = self.token;
                let name = match token.kind {
                    TokenKind::Text | TokenKind::QuotedName => token.unquoted(),
                    TokenKind::Word => token.text.to_owned(),
                    _ => return Err(self.unexpected("a member's name in quotes")),
                };
                self.advance();
                self.expect_sign(":")?;
                members.push((name, self.expression()?));
                if self.accept_sign("}") {
                    break;
                }
                if !self.accept_sign(",") {
                    return Err(self.unexpected("an operator, a comma or `}`"));
                }
            }
        }
        let depth = members
            .iter()
            .map(|(_, value)| value.depth)
            .max()
            .unwrap_or(0)
            + 1;
        self.node(start, depth, Node::Object(members))
    }

    fn case(&mut self) -> Result<Expression, SyntaxError> {
        let start = self.token.start;
        self.advance();
        let subject = if self.token.is_keyword("WHEN") {
            None
        } else {
            Some(Box::new(self.expression()?))
        };
        let mut depth = subject.as_ref().map_or(0, |subject| subject.depth);
        let mut branches = Vec::new();
        while self.accept_keyword("WHEN") {
            let condition = self.expression()?;
            self.expect_keyword("THEN")?;
            let result = self.expression()?;
            depth = depth.max(condition.depth).max(result.depth);
            branches.push((condition, result));
        }
        if branches.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        let otherwise = if self.accept_keyword("ELSE") {
            Some(Box::new(self.expression()?))
        } else {
            None
        };
        depth = depth.max(otherwise.as_ref().map_or(0, |otherwise| otherwise.depth));
        if !self.accept_keyword("END") {
            let expected = if otherwise.is_some() {
                "an operator or END"
            } else {
                "an operator, WHEN, ELSE or END"
            };
            return Err(self.unexpected(expected));
        }
        let node = Node::Case {
            subject,
            branches,
            otherwise,
        };
        self.node(start, depth + 1, node)
    }

    fn cast(&mut self) -> Result<Expression, SyntaxError> {
        let start = self.token.start;
        self.advance();
        self.expect_sign("(")?;
        let operand = self.expression()?;
        self.expect_keyword("AS")?;
        let target = match self.token.text.to_ascii_lowercase().as_str() {
            "string" | "nvarchar" | "text" | "ntext" | "varchar" => CastType::Text,
            "int" | "integer" => CastType::Int,
            "decimal" => CastType::Decimal,
            "double" => CastType::Double,
            "bool" | "boolean" => CastType::Boolean,
            _ => return Err(self.unexpected("String, Int, Decimal, Double or Boolean")),
        };
        self.advance();
        self.expect_sign(")")?;
        let depth = operand.depth + 1;
        self.node(start, depth, Node::Cast(Box::new(operand), target))
    }

    fn call(&mut self) -> Result<Expression, SyntaxError> {
        let token = self.token;
        let function = self.function(&token)?;
        self.advance();
        self.expect_sign("(")?;
        let arguments = self.arguments()?;
        let (least, most) = function.arity();
        if arguments.len() < least || arguments.len() > most {
            let expected = format!("{} in {}()", argument_count(least, most), function.name());
            let found = arguments.len().to_string();
            return Err(self.error_at(token.start, expected, found));
        }
        self.check_modes(function, &arguments)?;
        self.check_time_pattern(function, &arguments)?;
        let pattern = match (function.takes_pattern(), arguments.get(1)) {
            (true, Some(argument)) => self.pattern(argument)?,
            _ => None,
        };
        let depth = depth_of(&arguments) + 1;
        let call = Call {
            function,
            arguments,
            pattern,
        };
        self.node(token.start, depth, Node::Call(call))
    }

    /// Parses a list in which `*` may stand for the whole source.
    fn arguments(&mut self) -> Result<Vec<Expression>, SyntaxError> {
        let mut arguments = Vec::new();
        if self.accept_sign(")") {
            return Ok(arguments);
        }
        loop {
            let start = self.token.start;
            if self.token.is_sign("*") {
                self.advance();
                arguments.push(self.node(start, 1, Node::Whole)?);
            } else {
                arguments.push(self.expression()?);
            }
            if self.accept_sign(")") {
                return Ok(arguments);
            }
            if !self.accept_sign(",") {
                return Err(self.unexpected("an operator, a comma or `)`"));
            }
        }
    }

    /// Arguments that select a function's mode must be literals, as in AWS IoT.
    fn check_modes(&self, function: Function, arguments: &[Expression]) -> Result<(), SyntaxError> {
        let (place, allowed): (usize, &[&str]) = match function {
            Function::Encode | Function::Decode => (1, &["base64"]),
            Function::Transform => (0, &["enrichArray"]),
            Function::GetMqttProperty => (
                0,
                &[
                    "content_type",
                    "format_indicator",
                    "response_topic",
                    "correlation_data",
                ],
            ),
            _ => return Ok(()),
        };
        let Some(argument) = arguments.get(place) else {
            return Ok(());
        };
        match &argument.node {
            Node::Literal(Value::String(mode)) if allowed.contains(&mode.as_str()) => Ok(()),
            _ => {
                let expected = allowed
                    .iter()
                    .map(|mode| format!("'{mode}'"))
                    .collect::<Vec<_>>()
                    .join(" or ");
                let found = &self.text[argument.span.start..argument.span.end];
                Err(self.error_at(argument.span.start, expected, format!("`{found}`")))
            }
        }
    }

    /// Validates a literal date pattern.
    fn check_time_pattern(
        &self,
        function: Function,
        arguments: &[Expression],
    ) -> Result<(), SyntaxError> {
        let argument = match function {
            Function::ParseTime => arguments.first(),
            Function::TimeToEpoch => arguments.get(1),
            _ => None,
        };
        if let Some(argument) = argument
            && let Node::Literal(Value::String(pattern)) = &argument.node
        {
            return check_pattern(function, pattern).map_err(|reason| {
                self.error_at(argument.span.start, "a pattern of dates and times", reason)
            });
        }
        Ok(())
    }

    /// Compiles a literal regular expression.
    ///
    /// DIFFERENCE: AWS IoT accepts any text and evaluates it to Undefined. Here a pattern that is
    /// invalid or only works in Java is rejected with the statement.
    fn pattern(&self, argument: &Expression) -> Result<Option<regex::Regex>, SyntaxError> {
        let Node::Literal(Value::String(pattern)) = &argument.node else {
            return Ok(None);
        };
        regular_expression::compile(pattern)
            .map(Some)
            .map_err(|reason| {
                self.error_at(argument.span.start, "a valid regular expression", reason)
            })
    }
}

fn argument_count(least: usize, most: usize) -> String {
    let plural = |count: usize| if count == 1 { "argument" } else { "arguments" };
    if least == most {
        format!("{least} {}", plural(least))
    } else {
        format!("{least} to {most} arguments")
    }
}

fn depth_of(expressions: &[Expression]) -> usize {
    expressions
        .iter()
        .map(|expression| expression.depth)
        .max()
        .unwrap_or(0)
}

fn depth_of_select(select: &Select) -> usize {
    let selected = |selected: &Selected| match selected {
        Selected::Everything => 0,
        Selected::Members(expression) | Selected::Expression(expression) => expression.depth,
    };
    let selection = match &select.selection {
        Selection::Value(value) => selected(value),
        Selection::Items(items) => items
            .iter()
            .map(|item| selected(&item.selected))
            .max()
            .unwrap_or(0),
    };
    let condition = select
        .condition
        .as_ref()
        .map_or(0, |condition| condition.depth);
    selection.max(condition).max(select.source.depth)
}
