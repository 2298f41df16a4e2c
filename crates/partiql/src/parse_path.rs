//! Parses names and paths.

use homeport_item::expression::{PATH_DEPTH_MAX, Path};

use crate::error::ParseError;
use crate::parser::{Parser, is_keyword};
use crate::reserved::is_reserved;
use crate::token::Token;

impl Parser<'_> {
    /// Whether the token `ahead` tokens further is a name.
    pub(crate) fn name_at(&self, ahead: usize) -> bool {
        match self.peek_at(ahead) {
            Token::Name(_) => true,
            Token::Word(word) => !is_keyword(word),
            _ => false,
        }
    }

    /// Parses a quoted or bare name.
    pub(crate) fn name(&mut self) -> Result<String, ParseError> {
        if !self.name_at(0) {
            return Err(self.no_term());
        }
        match self.advance() {
            Token::Name(name) | Token::Word(name) => Ok(name),
            _ => Err(self.no_term()),
        }
    }

    /// Parses the name after a dot.
    fn step(&mut self) -> Result<String, ParseError> {
        match self.peek() {
            Token::Name(_) => {}
            Token::Word(word) if !is_reserved(word) => {}
            _ => return Err(self.syntax("Invalid path dot component")),
        }
        match self.advance() {
            Token::Name(name) | Token::Word(name) => Ok(name),
            _ => Err(self.no_term()),
        }
    }

    /// Parses a path: `a.b[3]."c d"`.
    pub(crate) fn path(&mut self) -> Result<Path, ParseError> {
        let mut path = Path::new(self.name()?);
        loop {
            if self.take_sign(".") {
                path = path.member(self.step()?);
            } else if self.take_sign("[") {
                let Token::Number(text) = self.peek() else {
                    return Err(self.syntax("Invalid path index"));
                };
                let Ok(index) = text.parse() else {
                    return Err(self.unsupported(format!(
                        "List index is not within the allowable range; index: [{text}]"
                    )));
                };
                self.advance();
                self.expect_sign("]", "RIGHT_BRACKET")?;
                path = path.element(index);
            } else {
                return Ok(path);
            }
            if path.nested().len() >= PATH_DEPTH_MAX {
                return Err(self.unsupported(format!(
                    "The document path has too many nesting levels; nesting levels: {}",
                    path.nested().len() + 1
                )));
            }
        }
    }
}
