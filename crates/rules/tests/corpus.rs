//! The language, case by case: `corpus/cases.txt` lists the results of expressions, statements and
//! templates. The head of that file describes its format.

use std::fmt::Write as _;

use homeport_rules::{
    Message, Outcome, Payload, Properties, Randomness, Statement, Template, Value,
};

const CASES: &str = include_str!("corpus/cases.txt");
/// A truncated corpus must not pass.
const CASES_MIN: usize = 300;

/// A byte source that increments by sixteen.
struct Steps(u8);

impl Randomness for Steps {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.0;
            self.0 = self.0.wrapping_add(16);
        }
    }
}

struct Case {
    line: usize,
    text: String,
    expected: String,
    topic: String,
    payload: String,
}

/// Splits the file into cases. A directive applies until the next one of its kind.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let (mut topic, mut payload) = ("a/b".to_owned(), "{}".to_owned());
    let mut text = String::new();
    let mut first_line = 0;
    for (index, line) in CASES.lines().enumerate() {
        let line_number = index + 1;
        if text.is_empty() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            if let Some(value) = line.strip_prefix("topic:") {
                value.trim().clone_into(&mut topic);
                continue;
            }
            if let Some(value) = line.strip_prefix("payload:") {
                value.trim().clone_into(&mut payload);
                continue;
            }
            first_line = line_number;
        }
        match line.split_once("=>") {
            None => {
                text.push_str(line);
                text.push('\n');
            }
            Some((rest, expected)) => {
                text.push_str(rest.trim_end());
                cases.push(Case {
                    line: first_line,
                    text: std::mem::take(&mut text).trim_end().to_owned(),
                    expected: expected.trim().to_owned(),
                    topic: topic.clone(),
                    payload: payload.clone(),
                });
            }
        }
    }
    assert!(text.is_empty(), "line {first_line}: a case without `=>`");
    cases
}

/// The result of a case, in the format of the file.
fn run(case: &Case) -> String {
    let bytes = match case.payload.strip_prefix("bytes ") {
        Some(list) => list
            .split_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).expect("a byte in hexadecimal"))
            .collect(),
        None => case.payload.clone().into_bytes(),
    };
    let payload = Payload::new(&bytes);
    let user = [("key", "first"), ("key", "second"), ("other", "third")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let message = Message {
        topic: &case.topic,
        payload: &payload,
        client_id: (case.topic != "http").then_some("client-1"),
        principal: (case.topic != "http").then_some("key-1"),
        source_ip: Some("192.0.2.1"),
        account_id: "123456789012",
        now_ms: 1_733_529_600_000,
        trace_id: "12345678-1234-1234-1234-123456789012",
        properties: Properties {
            content_type: Some("application/json"),
            response_topic: None,
            correlation_data: Some(b"abc"),
            payload_is_text: Some(true),
            user: &user,
        },
    };
    let mut randomness = Steps(0);
    if let Some(text) = case.text.strip_prefix("template:") {
        return match Template::parse(text.trim()) {
            Err(error) => format!("refused {}:{} {error}", error.line, error.column),
            Ok(template) => match template.render(&message, &mut randomness) {
                Ok(text) => Value::from(text).to_json(),
                Err(error) => format!("fails {error}"),
            },
        };
    }
    let first = case.text.split_whitespace().next().unwrap_or_default();
    let is_statement = ["SELECT", "SET"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word));
    let sql = if is_statement {
        case.text.clone()
    } else {
        format!("SELECT VALUE {} FROM '#'", case.text)
    };
    let statement = match Statement::parse(&sql) {
        Ok(statement) => statement,
        Err(error) => {
            let shift = if is_statement || error.line > 1 {
                0
            } else {
                "SELECT VALUE ".len()
            };
            return format!("refused {}:{} {error}", error.line, error.column - shift);
        }
    };
    let outcome = statement.evaluate(&message, &mut randomness);
    let explained = statement.explain(&message, &mut Steps(0));
    assert_eq!(
        explained.outcome, outcome,
        "line {}: explain differs",
        case.line
    );
    match outcome {
        Err(error) => format!("fails {error}"),
        Ok(Outcome::NotMatched) => {
            assert!(explained.unmet.is_some(), "line {}: no reason", case.line);
            "not matched".to_owned()
        }
        Ok(Outcome::Matched(Value::Undefined)) => {
            let reasons = &explained.undefined;
            assert!(
                !reasons.is_empty(),
                "line {}: no reason for Undefined",
                case.line
            );
            "undefined".to_owned()
        }
        Ok(Outcome::Matched(value)) => value.to_json(),
    }
}

fn agrees(expected: &str, got: &str) -> bool {
    if let Some(wanted) = expected.strip_prefix("refused ") {
        let (place, words) = wanted.split_once(' ').unwrap_or((wanted, ""));
        return got.strip_prefix("refused ").is_some_and(|got| {
            got.split_once(' ')
                .is_some_and(|(found, message)| found == place && message.contains(words))
        });
    }
    if let Some(words) = expected.strip_prefix("fails ") {
        return got.starts_with("fails ") && got.contains(words);
    }
    if matches!(expected, "undefined" | "not matched") {
        return expected == got;
    }
    let value = Value::from_json(expected).expect("the expected value is JSON");
    value.to_json() == got
}

#[test]
fn every_case_has_the_listed_result() {
    let cases = cases();
    let mut failures = String::new();
    for case in &cases {
        let got = run(case);
        if !agrees(&case.expected, &got) {
            let _ = write!(
                failures,
                "\ncases.txt:{}\n{}\n  payload  {}\n  expected {}\n  got      {}\n",
                case.line, case.text, case.payload, case.expected, got
            );
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(cases.len() >= CASES_MIN, "only {} cases", cases.len());
}
