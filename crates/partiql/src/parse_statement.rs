//! Parses whole statements.

use homeport_item::Value;

use crate::error::ParseError;
use crate::parser::{Parser, is_keyword};
use crate::statement::{
    Delete, Insert, OrderTerm, ReturnValues, Select, Statement, Target, Update,
};
use crate::token::{self, Position, Token};

impl Statement {
    /// Parses a statement. Each question mark is replaced by the next of `parameters`.
    ///
    /// # Errors
    /// When the text is not a statement or DynamoDB does not support it, with DynamoDB's message.
    pub fn parse(text: &str, parameters: &[Value]) -> Result<Self, ParseError> {
        let mut parser = Parser::new(token::tokens(text)?, parameters);
        let statement = parser.statement()?;
        parser.end()?;
        if parser.used_parameters > parser.supplied() {
            return Err(
                parser.unsupported("Number of parameters in request and statement don't match.")
            );
        }
        Ok(statement)
    }
}

impl Parser<'_> {
    fn statement(&mut self) -> Result<Statement, ParseError> {
        if self.take_word("SELECT") {
            return self.select().map(Statement::Select);
        }
        if self.at_word("EXISTS") && self.sign_at(1, "(") {
            return self.exists().map(Statement::Exists);
        }
        if self.at_word("INSERT") {
            self.advance();
            self.expect_word("INTO")?;
            return self.insert().map(Statement::Insert);
        }
        if self.take_word("UPDATE") {
            return self.update(false).map(Statement::Update);
        }
        if self.at_word("DELETE") {
            self.advance();
            self.expect_word("FROM")?;
            return self.delete().map(Statement::Delete);
        }
        if self.take_word("FROM") {
            return self.update(true).map(Statement::Update);
        }
        match self.peek() {
            Token::Word(word) if !is_keyword(word) && *self.peek_at(1) == Token::End => {
                Err(self.unsupported("Unsupported operation: Id"))
            }
            // Syntactically a product, whose second factor would be a whole statement starting with
            // FROM.
            Token::Word(word)
                if !is_keyword(word) && self.sign_at(1, "*") && self.word_at(2, "FROM") =>
            {
                Err(self.syntax("Expected data manipulation"))
            }
            Token::Word(word) if !is_keyword(word) => {
                self.advance();
                Err(self.syntax("Unexpected token after expression"))
            }
            _ => Err(self.no_term()),
        }
    }

    fn end(&mut self) -> Result<(), ParseError> {
        if self.take_sign(";") {
            return match self.peek() {
                Token::End => Ok(()),
                _ => {
                    Err(self
                        .syntax("Unexpected token after semicolon. (Only one query is allowed.)"))
                }
            };
        }
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(self.syntax("Unexpected token after expression")),
        }
    }

    fn exists(&mut self) -> Result<Select, ParseError> {
        self.advance();
        self.advance();
        self.expect_word("SELECT")?;
        let select = self.select()?;
        self.expect_sign(")", "RIGHT_PAREN")?;
        Ok(select)
    }

    fn select(&mut self) -> Result<Select, ParseError> {
        let mut projection = Vec::new();
        if !self.take_sign("*") {
            loop {
                if self.name_at(0) && self.sign_at(1, "(") {
                    let at = self.here();
                    return Err(self.unsupported(format!("Unexpected path component at {at}")));
                }
                projection.push(self.path()?);
                if self.at_word("AS") {
                    return Err(self.unsupported("Aliasing is not supported"));
                }
                if !self.take_sign(",") {
                    break;
                }
            }
        }
        self.expect_word("FROM")?;
        let target = self.target()?;
        if self.at_sign(",") {
            return Err(self.unsupported("Only select from a single table or index is supported."));
        }
        let condition = self.where_clause()?;
        let order = self.order()?;
        Ok(Select {
            target,
            projection,
            condition,
            order,
        })
    }

    fn insert(&mut self) -> Result<Insert, ParseError> {
        let at = self.here();
        let table = self.component()?;
        if self.at_sign(".") {
            return Err(ParseError::unsupported(
                format!(
                    "FROM clause may only contain a single table name in data manipulation statements at {at}"
                ),
                at,
            ));
        }
        if self.name_at(0) {
            return Err(self.syntax("Unexpected token after expression"));
        }
        self.expect_word("VALUE")?;
        let item = self.item()?;
        Ok(Insert {
            table,
            item: item.into(),
        })
    }

    /// `UPDATE table SET … WHERE …` or, with the condition first, `FROM table WHERE … SET …`.
    fn update(&mut self, condition_first: bool) -> Result<Update, ParseError> {
        let target = self.target()?;
        let mut condition = None;
        if condition_first {
            condition = self.where_clause()?;
        }
        if !self.at_change() {
            return Err(self.syntax("Expected data manipulation"));
        }
        let update = self.changes()?;
        if !condition_first {
            condition = self.where_clause()?;
        }
        let returning = self.returning()?;
        Ok(Update {
            target,
            update,
            condition,
            returning,
        })
    }

    fn delete(&mut self) -> Result<Delete, ParseError> {
        let target = self.target()?;
        let condition = self.where_clause()?;
        let returning = self.returning()?;
        Ok(Delete {
            target,
            condition,
            returning,
        })
    }

    /// Parses `table` or `"table"."index"`.
    fn target(&mut self) -> Result<Target, ParseError> {
        let table = self.component()?;
        let mut index = None;
        if self.take_sign(".") {
            index = Some(self.component()?);
            if self.at_sign(".") {
                return Err(
                    self.unsupported("A path may contain at most 2 components in the FROM clause")
                );
            }
        }
        if self.at_word("AS") || self.name_at(0) {
            return Err(self.unsupported("Aliasing is not supported"));
        }
        Ok(Target { table, index })
    }

    fn component(&mut self) -> Result<String, ParseError> {
        if !self.name_at(0) {
            return Err(self.syntax("Expected identifier for simple path"));
        }
        let name = self.name()?;
        if name.is_empty() {
            return Err(self.unsupported("Path component cannot be an empty string"));
        }
        Ok(name)
    }

    fn where_clause(&mut self) -> Result<Option<homeport_item::expression::Condition>, ParseError> {
        if self.take_word("WHERE") {
            return self.condition().map(Some);
        }
        Ok(None)
    }

    fn order(&mut self) -> Result<Vec<OrderTerm>, ParseError> {
        let mut terms = Vec::new();
        if !self.take_word("ORDER") {
            return Ok(terms);
        }
        self.expect_word("BY")?;
        loop {
            let at = self.here();
            if matches!(self.peek(), Token::Text(_)) {
                return Err(not_a_name("STRING", at));
            }
            let path = self.path()?;
            if !path.nested().is_empty() {
                return Err(not_a_name("PATH", at));
            }
            let descending = self.take_word("DESC");
            if !descending {
                self.take_word("ASC");
            }
            terms.push(OrderTerm {
                name: path.name().to_owned(),
                descending,
            });
            if !self.take_sign(",") {
                return Ok(terms);
            }
        }
    }

    /// Parses `RETURNING ALL|MODIFIED OLD|NEW *`.
    fn returning(&mut self) -> Result<Option<ReturnValues>, ParseError> {
        if !self.take_word("RETURNING") {
            return Ok(None);
        }
        let all = self.at_word("ALL");
        if !all && !self.at_word("MODIFIED") {
            return Err(self.syntax("Expected ALL or MODIFIED in a returning clause"));
        }
        self.advance();
        let old = self.at_word("OLD");
        if !old && !self.at_word("NEW") {
            return Err(self.syntax("Expected OLD or NEW in a returning clause"));
        }
        self.advance();
        self.expect_sign("*", "ASTERISK")?;
        Ok(Some(match (all, old) {
            (true, true) => ReturnValues::AllOld,
            (true, false) => ReturnValues::AllNew,
            (false, true) => ReturnValues::ModifiedOld,
            (false, false) => ReturnValues::ModifiedNew,
        }))
    }
}

fn not_a_name(found: &str, at: Position) -> ParseError {
    ParseError::unsupported(
        format!("Argument to ORDER BY must be of type VariableReference. Type: {found} at {at}"),
        at,
    )
}
