//! Regular expressions.
//!
//! DIFFERENCE: AWS IoT uses Java's regular expressions. Here look-around and back references are
//! not supported, which keeps search time linear in the text's length.

use regex::{Captures, Regex, RegexBuilder};

use super::Function;
use super::text::text;
use crate::evaluate::{Context, Fault};
use crate::value::Value;

/// Maximum length of a pattern.
pub(crate) const PATTERN_LEN_MAX_BYTES: usize = 1024;
/// Maximum memory of a compiled pattern.
const COMPILED_SIZE_MAX_BYTES: usize = 256 * 1024;
/// The cost of compiling a pattern from a message, in bytes of work.
const COMPILE_COST_BYTES: usize = 64 * 1024;

/// # Errors
/// A message that says why the pattern is invalid.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN_LEN_MAX_BYTES {
        return Err(format!(
            "a pattern of more than {PATTERN_LEN_MAX_BYTES} bytes"
        ));
    }
    RegexBuilder::new(pattern)
        .size_limit(COMPILED_SIZE_MAX_BYTES)
        .dfa_size_limit(COMPILED_SIZE_MAX_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "a pattern that grows too large".to_owned(),
            other => {
                // The last line is the message; the lines above show the pattern.
                let text = other.to_string();
                let reason = text.lines().last().unwrap_or_default();
                reason.trim_start_matches("error: ").to_owned()
            }
        })
}

pub(super) fn call(
    function: Function,
    written: Option<&Regex>,
    arguments: &[std::borrow::Cow<'_, Value>],
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    let subject = text(&arguments[0], context)?;
    let compiled;
    let pattern = match written {
        Some(pattern) => pattern,
        None => {
            context.spend_bytes(COMPILE_COST_BYTES)?;
            let pattern = text(&arguments[1], context)?;
            compiled = compile(&pattern).map_err(Fault::from)?;
            &compiled
        }
    };
    match function {
        Function::RegexpMatches => Ok(Value::Boolean(pattern.is_match(&subject))),
        Function::RegexpSubstr => match pattern.find(&subject) {
            Some(found) => Ok(Value::from(found.as_str())),
            None => Err("the text does not match the pattern".into()),
        },
        _ => {
            let replacement = text(&arguments[2], context)?;
            let parts = replacement_parts(&replacement, pattern)?;
            replace_all(pattern, &subject, &parts, context).map(Value::String)
        }
    }
}

enum Part {
    Text(String),
    Group(usize),
}

/// A replacement in Java's syntax: `$1` and `${name}` are groups, `\` escapes the next character.
fn replacement_parts(replacement: &str, pattern: &Regex) -> Result<Vec<Part>, Fault> {
    let refuse = || Fault::from("the replacement refers to a missing group");
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut characters = replacement.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => literal.push(characters.next().ok_or_else(refuse)?),
            '$' => {
                let group = if characters.next_if_eq(&'{').is_some() {
                    let mut name = String::new();
                    loop {
                        match characters.next().ok_or_else(refuse)? {
                            '}' => break,
                            other => name.push(other),
                        }
                    }
                    let mut names = pattern.capture_names();
                    names
                        .position(|known| known == Some(name.as_str()))
                        .ok_or_else(refuse)?
                } else {
                    let digit = |character: &char| character.to_digit(10);
                    let first = characters
                        .next()
                        .as_ref()
                        .and_then(digit)
                        .ok_or_else(refuse)?;
                    let mut group = first as usize;
                    // The number uses as many digits as form the index of an existing group.
                    while let Some(next) = characters.peek().and_then(digit) {
                        let longer = group.saturating_mul(10).saturating_add(next as usize);
                        if longer >= pattern.captures_len() {
                            break;
                        }
                        group = longer;
                        characters.next();
                    }
                    group
                };
                if group >= pattern.captures_len() {
                    return Err(refuse());
                }
                if !literal.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut literal)));
                }
                parts.push(Part::Group(group));
            }
            other => literal.push(other),
        }
    }
    if !literal.is_empty() {
        parts.push(Part::Text(literal));
    }
    Ok(parts)
}

fn replace_all(
    pattern: &Regex,
    subject: &str,
    parts: &[Part],
    context: &mut Context<'_>,
) -> Result<String, Fault> {
    let mut result = String::new();
    let mut at = 0;
    let mut paid = 0;
    let append = |captures: &Captures<'_>, result: &mut String| {
        for part in parts {
            match part {
                Part::Text(text) => result.push_str(text),
                Part::Group(group) => {
                    result.push_str(captures.get(*group).map_or("", |found| found.as_str()));
                }
            }
        }
    };
    for captures in pattern.captures_iter(subject) {
        let Some(found) = captures.get(0) else {
            continue;
        };
        result.push_str(&subject[at..found.start()]);
        append(&captures, &mut result);
        at = found.end();
        // A replacement can be much longer than its match, so each one is charged as it is created.
        context.spend_bytes((result.len() - paid).max(64))?;
        paid = result.len();
    }
    result.push_str(&subject[at..]);
    Ok(result)
}
