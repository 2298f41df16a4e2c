//! What the corpus cannot express: reasons, limits, variables in templates, and random texts.

use homeport_rules::{
    ALIAS_DEPTH_MAX, EXPRESSION_DEPTH_MAX, EvaluationError, Explanation, Message, NOTES_MAX,
    Outcome, Payload, Properties, RenderError, SELECT_ITEMS_MAX, Statement, SyntaxError,
    TEXT_LEN_MAX_BYTES, Template, TopicFilter, VARIABLE_NAME_CHARS_MAX, VARIABLES_MAX, Value,
};
use proptest::prelude::*;

fn message<'a>(topic: &'a str, payload: &'a Payload<'a>) -> Message<'a> {
    Message {
        topic,
        payload,
        client_id: Some("client-1"),
        principal: None,
        source_ip: None,
        account_id: "homeport",
        now_ms: 0,
        trace_id: "",
        properties: Properties::default(),
    }
}

/// A byte source that never repeats.
fn counting() -> impl FnMut(&mut [u8]) {
    let mut next = 0u8;
    move |bytes: &mut [u8]| {
        next = next.wrapping_add(1);
        bytes.fill(next);
    }
}

fn parse(sql: &str) -> Statement {
    Statement::parse(sql).unwrap_or_else(|error| panic!("{error}"))
}

fn evaluate(sql: &str, payload: &str) -> Result<Outcome, EvaluationError> {
    let payload = Payload::new(payload.as_bytes());
    parse(sql).evaluate(&message("a/b", &payload), &mut counting())
}

fn explain(sql: &str, payload: &str) -> Explanation {
    let payload = Payload::new(payload.as_bytes());
    parse(sql).explain(&message("a/b", &payload), &mut counting())
}

fn refused(sql: &str) -> SyntaxError {
    Statement::parse(sql).expect_err("it must be refused")
}

/// The notes as text: reason and position.
fn reasons(explanation: &Explanation) -> Vec<(String, String)> {
    let notes = explanation.undefined.iter();
    notes
        .map(|note| (note.text.clone(), note.reason.clone()))
        .collect()
}

#[test]
fn undefined_is_explained_at_its_origin() {
    let explanation = explain(
        "SELECT upper(a.b) AS x, 1 / zero AS y, get(list, 5) AS z, text - 1 AS t FROM 'a/b'",
        r#"{"a":{},"zero":0,"list":[1],"text":"five"}"#,
    );
    let expected = [
        ("a.b", "there is no `b`"),
        ("1 / zero", "a division by zero"),
        ("get(list, 5)", "it does not contain 5"),
        (
            "text - 1",
            "the text \"five\" and Int cannot be calculated with",
        ),
    ]
    .map(|(text, reason)| (text.to_owned(), reason.to_owned()));
    assert_eq!(reasons(&explanation), expected);
    let first = &explanation.undefined[0];
    assert_eq!(
        (first.line, first.column, first.start, first.end),
        (1, 14, 13, 16)
    );
}

#[test]
fn unmet_part_of_where_is_reported() {
    let sql = "SELECT *\nFROM 'a/b'\nWHERE volts > 12 AND state = 'on' AND level < 3";
    let unmet = |payload: &str| {
        let note = explain(sql, payload).unmet.expect("a reason");
        (note.line, note.text, note.reason)
    };
    assert_eq!(
        unmet(r#"{"volts":13.2,"state":"off","level":9}"#),
        (
            3,
            "state = 'on'".to_owned(),
            r#""off" = "on" is false"#.to_owned()
        )
    );
    assert_eq!(
        unmet(r#"{"state":"on","level":1}"#),
        (
            3,
            "volts > 12".to_owned(),
            "Undefined > 12 is Undefined".to_owned()
        )
    );
    let other = explain("SELECT * FROM 'a/b' WHERE isNull(x)", r#"{"x":1}"#);
    let note = other.unmet.expect("a reason");
    assert_eq!(
        (note.text.as_str(), note.reason.as_str()),
        ("isNull(x)", "it is false")
    );
    assert_eq!(
        explain(sql, r#"{"volts":13,"state":"on","level":1}"#).unmet,
        None
    );
}

#[test]
fn unmatched_topic_is_a_reason() {
    let explanation = explain("SELECT * FROM 'van/+'", "{}");
    assert_eq!(explanation.outcome, Ok(Outcome::NotMatched));
    let note = explanation.unmet.expect("a reason");
    assert_eq!((note.text.as_str(), note.column), ("'van/+'", 15));
    assert_eq!(note.reason, "the topic is a/b");
}

#[test]
fn number_of_reasons_is_limited() {
    let list = vec!["missing"; NOTES_MAX + 10].join(", ");
    let explanation = explain(&format!("SELECT [{list}] AS x FROM 'a/b'"), "{}");
    assert_eq!(explanation.undefined.len(), NOTES_MAX);
}

#[test]
fn templates_see_the_statement_variables() {
    let statement = parse("SET @id = newuuid() SELECT @id AS id FROM 'a/b'");
    let payload = Payload::new(b"{}");
    let message = message("a/b", &payload);
    let mut randomness = counting();
    let (outcome, variables) = statement
        .run(&message, &mut randomness)
        .expect("an outcome");
    let template = Template::parse_for("items/${@id}", &statement).expect("a template");
    let text = template
        .render_with(&message, &variables, &mut randomness)
        .expect("a text");
    let Outcome::Matched(Value::Object(object)) = outcome else {
        panic!("the rule fires");
    };
    let id = object.get("id").and_then(Value::as_str).expect("an id");
    assert_eq!(text, format!("items/{id}"));
    // Without the statement's variables there is no value, and the error names the expression.
    assert_eq!(
        template.render(&message, &mut randomness),
        Err(RenderError::Undefined {
            expression: "@id".to_owned()
        })
    );
}

#[test]
fn reference_statement_runs() {
    let reference = include_str!("../../../docs/iot-sql.md");
    let sql = reference
        .split("```")
        .nth(1)
        .and_then(|block| block.strip_prefix("sql"));
    let statement = parse(sql.expect("an example"));
    let payload = Payload::new(br#"{"battery":{"millivolts":11500.4},"location":"home"}"#);
    let message = message("van/one/telemetry", &payload);
    let outcome = statement
        .evaluate(&message, &mut counting())
        .expect("an outcome");
    let Outcome::Matched(value) = outcome else {
        panic!("11.5 is less than 11.8");
    };
    assert_eq!(
        value.to_json(),
        r#"{"thing_name":"one","timestamp":0,"battery":{"millivolts":11500.4,"volts":11.5},"location":"home"}"#
    );
}

#[test]
fn statements_can_be_shared_between_threads() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<Statement>();
    assert_shared::<Template>();
    assert_shared::<Payload<'_>>();
}

#[test]
fn constant_templates_are_recognised() {
    assert!(Template::parse("a/b").expect("a template").is_constant());
    assert!(
        !Template::parse("a/${topic(1)}")
            .expect("a template")
            .is_constant()
    );
}

#[test]
fn payload_is_parsed_once() {
    let payload = Payload::new(br#"{"a":1}"#);
    let first = payload.json().expect("JSON");
    assert!(std::ptr::eq(first, payload.json().expect("JSON")));
    let bad = Payload::new(b"{");
    assert!(std::ptr::eq(
        bad.json().expect_err("no JSON"),
        bad.json().expect_err("no JSON")
    ));
}

#[test]
fn overlong_texts_are_rejected() {
    let padding = " ".repeat(TEXT_LEN_MAX_BYTES);
    let error = refused(&format!("SELECT * FROM 'a/b'{padding}"));
    assert!(error.expected.contains("at most 32768 bytes"), "{error}");
    assert!(Template::parse(&format!("x{padding}")).is_err());
}

#[test]
fn expression_depth_is_limited() {
    let nested = |open: &str, close: &str, levels: usize| {
        format!(
            "SELECT VALUE {}1{} FROM 'a/b'",
            open.repeat(levels),
            close.repeat(levels)
        )
    };
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("abs(", ")"),
        ("- ", ""),
        ("NOT ", ""),
        ("{'a': ", "}"),
    ] {
        assert!(
            Statement::parse(&nested(open, close, EXPRESSION_DEPTH_MAX / 2)).is_ok(),
            "{open}"
        );
        let error = refused(&nested(open, close, EXPRESSION_DEPTH_MAX + 1));
        assert!(
            error.expected.contains("within one another"),
            "{open}: {error}"
        );
    }
    // A chain of operators nests to the left without parentheses.
    for operator in ["+", "AND", "=", "IN"] {
        let row = |count: usize| {
            format!(
                "SELECT VALUE 1{} FROM 'a/b'",
                format!(" {operator} 1").repeat(count)
            )
        };
        assert!(
            Statement::parse(&row(EXPRESSION_DEPTH_MAX / 2)).is_ok(),
            "{operator}"
        );
        let error = refused(&row(EXPRESSION_DEPTH_MAX + 1));
        assert!(
            error.expected.contains("within one another"),
            "{operator}: {error}"
        );
    }
    let path = format!(
        "SELECT VALUE a{} FROM 'a/b'",
        ".b".repeat(EXPRESSION_DEPTH_MAX + 1)
    );
    assert!(refused(&path).expected.contains("within one another"));
    let selects = format!(
        "SELECT VALUE {}1{} FROM 'a/b'",
        "(SELECT VALUE ".repeat(EXPRESSION_DEPTH_MAX + 1),
        " FROM e)".repeat(EXPRESSION_DEPTH_MAX + 1)
    );
    assert!(refused(&selects).expected.contains("within one another"));
}

#[test]
fn lists_names_and_variables_are_limited() {
    let items = |count: usize| format!("SELECT {} FROM 'a/b'", vec!["a"; count].join(", "));
    assert!(Statement::parse(&items(SELECT_ITEMS_MAX)).is_ok());
    assert!(
        refused(&items(SELECT_ITEMS_MAX + 1))
            .expected
            .contains("things to select")
    );

    let alias = |count: usize| format!("SELECT a AS {} FROM 'a/b'", vec!["x"; count].join("."));
    assert!(Statement::parse(&alias(ALIAS_DEPTH_MAX)).is_ok());
    assert!(
        refused(&alias(ALIAS_DEPTH_MAX + 1))
            .expected
            .contains("names in an alias")
    );

    let variables = |count: usize| {
        let list: Vec<String> = (0..count).map(|number| format!("@v{number} = 1")).collect();
        format!("SET {} SELECT * FROM 'a/b'", list.join(", "))
    };
    assert!(Statement::parse(&variables(VARIABLES_MAX)).is_ok());
    assert!(
        refused(&variables(VARIABLES_MAX + 1))
            .expected
            .contains("variables")
    );

    let name = |chars: usize| format!("SET @{} = 1 SELECT * FROM 'a/b'", "v".repeat(chars));
    assert!(Statement::parse(&name(VARIABLE_NAME_CHARS_MAX)).is_ok());
    assert!(
        refused(&name(VARIABLE_NAME_CHARS_MAX + 1))
            .expected
            .contains("characters")
    );
}

#[test]
fn work_is_limited() {
    let list = format!(
        r#"{{"l":[{}],"s":"{}"}}"#,
        vec!["1"; 2000].join(","),
        "a".repeat(50_000)
    );
    for sql in [
        "SET @l = l SELECT (SELECT VALUE (SELECT VALUE (SELECT VALUE 1 FROM @l) FROM @l) FROM @l) AS x FROM 'a/b'",
        "SELECT replace(s, 'a', s) AS x FROM 'a/b'",
        "SELECT regexp_replace(s, 'a', s) AS x FROM 'a/b'",
        "SET @l = l, @s = s SELECT (SELECT VALUE @s + @s FROM @l) AS x FROM 'a/b'",
        "SET @l = l, @s = s SELECT (SELECT VALUE @l = @l FROM @l) AS x FROM 'a/b'",
        "SET @l = l, @s = s SELECT (SELECT VALUE md5(@s) FROM @l) AS x FROM 'a/b'",
        "SET @l = l, @s = s SELECT (SELECT VALUE regexp_matches('a', 'a' + @s) FROM @l) AS x FROM 'a/b'",
        "SET @l = l, @p = 'a' SELECT (SELECT VALUE regexp_matches('a', @p) FROM @l) AS x FROM 'a/b'",
        "SET @l = l, @s = s SELECT (SELECT VALUE get_or_default(@s, 1) FROM @l) AS x FROM 'a/b'",
        "SET @l = l, @s = s SELECT (SELECT VALUE 0 IN @l FROM @l) AS x FROM 'a/b'",
    ] {
        assert_eq!(
            evaluate(sql, &list),
            Err(EvaluationError::TooMuchWork),
            "{sql}"
        );
    }
    let enough = "SELECT (SELECT VALUE 1 FROM l) AS x, length(s) AS y FROM 'a/b'";
    assert!(matches!(evaluate(enough, &list), Ok(Outcome::Matched(_))));
}

/// A statement in which each variable wraps the previous one several times.
fn wrapping(open: &str, close: &str, times: usize, variables: usize) -> String {
    let (open, close) = (open.repeat(times), close.repeat(times));
    let mut list = vec!["@o = o, @l = l, @v0 = 1".to_owned()];
    for number in 1..=variables {
        list.push(format!("@v{number} = {open}@v{}{close}", number - 1));
    }
    let (list, last) = (list.join(", "), format!("@v{variables}"));
    format!("SET {list} SELECT VALUE [{last}, {last} = {last}] FROM 'a/b'")
}

#[test]
fn value_depth_is_limited() {
    let payload = r#"{"o":{},"l":[1]}"#;
    for (open, close) in [
        ("[", "]"),
        ("{'a': ", "}"),
        ("(SELECT ", " AS a.b.c FROM @o)"),
        ("(SELECT VALUE ", " FROM @l)"),
        ("concat([], [", "])"),
    ] {
        let sql = wrapping(open, close, 25, VARIABLES_MAX - 3);
        assert_eq!(
            evaluate(&sql, payload),
            Err(EvaluationError::TooDeep),
            "{open}"
        );
    }
    let sql = wrapping("[", "]", 31, 4);
    let Ok(Outcome::Matched(value)) = evaluate(&sql, payload) else {
        panic!("125 levels are allowed");
    };
    assert!(value.clone().to_json().ends_with(",true]"));
    assert!(value.to_item().is_err());
}

#[test]
fn rendered_texts_are_limited() {
    let payload = format!(r#"{{"s":"{}"}}"#, "a".repeat(200_000));
    let payload = Payload::new(payload.as_bytes());
    let template = Template::parse("${s}${s}").expect("a template");
    assert_eq!(
        template.render(&message("a/b", &payload), &mut counting()),
        Err(RenderError::TooLong)
    );
}

/// Random sequences of statement tokens.
fn soup() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "SELECT",
        "SET",
        "VALUE",
        "FROM",
        "WHERE",
        "AS",
        "AND",
        "OR",
        "NOT",
        "IN",
        "EXISTS",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "NULL",
        "true",
        "*",
        ",",
        ".",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        "=",
        "<>",
        "<",
        ">=",
        "+",
        "-",
        "/",
        "%",
        "a",
        "b",
        "e",
        "@x",
        "'a/b'",
        "'x'",
        "\"y\"",
        "`q`",
        "1",
        "2.5",
        "1E9",
        "cast",
        "Int",
        "get",
        "concat",
        "upper",
        "topic",
        "substring",
        "regexp_replace",
        "parse_time",
        "time_to_epoch",
        "decode",
        "'base64'",
        "transform",
        "'enrichArray'",
        "$",
        "é",
        "--\n",
        ";",
        "${",
    ]);
    prop::collection::vec(pieces, 0..30).prop_map(|pieces| pieces.join(" "))
}

/// Well-formed expressions, which reach the evaluation.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "e",
        "o.k",
        "missing",
        "n",
        "s",
        "1",
        "0",
        "-2.5",
        "1E30",
        "1E-300",
        "'text'",
        "''",
        "'12'",
        "'true'",
        "true",
        "NULL",
        "[]",
        "{}",
        "topic(2)",
        "timestamp()",
        "*",
    ]);
    leaf.prop_map(|leaf| {
        if leaf == "*" {
            "get(*, 'a')".to_owned()
        } else {
            leaf.to_owned()
        }
    })
    .prop_recursive(5, 48, 3, |inner| {
        let one = prop::sample::select(vec![
            "abs",
            "acos",
            "bitnot",
            "ceil",
            "chr",
            "exp",
            "floor",
            "isNull",
            "isUndefined",
            "length",
            "ln",
            "lower",
            "md5",
            "numbytes",
            "round",
            "sha1",
            "sign",
            "sqrt",
            "tan",
            "trim",
            "upper",
            "topic",
            "concat",
            "get_or_default",
            "- ",
            "NOT ",
        ]);
        let two = prop::sample::select(vec![
            "atan2",
            "bitand",
            "bitxor",
            "endswith",
            "get",
            "indexof",
            "lpad",
            "mod",
            "nanvl",
            "power",
            "regexp_matches",
            "regexp_substr",
            "startswith",
            "substring",
            "trunc",
            "parse_time",
            "time_to_epoch",
            "concat",
        ]);
        let infix = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "=", "<>", "<", ">=", "AND", "OR", "IN",
        ]);
        let types = prop::sample::select(vec!["Int", "Decimal", "Double", "Boolean", "String"]);
        prop_oneof![
            (one, inner.clone()).prop_map(|(name, x)| format!("{name}({x})")),
            (two, inner.clone(), inner.clone())
                .prop_filter("patterns of dates are checked", |(name, x, y)| {
                    !name.contains("time") || !(x.starts_with('\'') || y.starts_with('\''))
                })
                .prop_map(|(name, x, y)| format!("{name}({x}, {y})")),
            (inner.clone(), infix, inner.clone())
                .prop_map(|(x, sign, y)| format!("({x} {sign} {y})")),
            (inner.clone(), types).prop_map(|(x, kind)| format!("cast({x} AS {kind})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(x, y, z)| format!("CASE {x} WHEN {y} THEN {z} ELSE {x} END")),
            (inner.clone(), inner.clone()).prop_map(|(x, y)| format!("[{x}, {{'k': {y}}}]")),
            (inner.clone(), inner.clone())
                .prop_map(|(x, y)| format!("(SELECT VALUE {x} FROM e WHERE {y} = {y})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(x, y, z)| format!("replace({x}, {y}, {z})")),
        ]
    })
}

const PAYLOAD: &str = r#"{"a":1.5,"b":"text","e":[{"a":1},{"a":"x","s":[1]},3],"o":{"k":"7"},"n":null,"s":"2020-01-01"}"#;

proptest! {
    #[test]
    fn random_texts_do_not_panic_the_parser(text in any::<String>()) {
        let _ = Statement::parse(&text);
        let _ = Template::parse(&text);
        let _ = TopicFilter::parse(&text);
    }

    #[test]
    fn token_sequences_do_not_panic(text in soup()) {
        for sql in [text.clone(), format!("SELECT {text} FROM 'a/b'")] {
            match Statement::parse(&sql) {
                Ok(_) => {
                    let _ = evaluate(&sql, PAYLOAD);
                }
                Err(error) => {
                    prop_assert!(sql.is_char_boundary(error.offset));
                    prop_assert!(error.to_string().ends_with('^'));
                }
            }
        }
        let _ = Template::parse(&format!("x${{{text}}}"));
    }

    #[test]
    fn formatted_times_parse_back(
        milliseconds in -2_208_988_800_000i64..4_102_444_800_000,
        zone in prop::sample::select(vec!["UTC", "America/Denver", "Europe/Zurich", "Asia/Kolkata", "-03:30"]),
    ) {
        let sql = "SELECT VALUE time_to_epoch(parse_time('EEE yyyy-MM-dd HH:mm:ss.SSS ZZ', t, z), 'EEE yyyy-MM-dd HH:mm:ss.SSS xxx') FROM 'a/b'";
        let payload = format!(r#"{{"t":{milliseconds},"z":"{zone}"}}"#);
        // Historic offsets with seconds lose them when written without seconds.
        let lost = match evaluate(sql, &payload) {
            Ok(Outcome::Matched(Value::Int(back))) => back.to_i128().expect("whole") - i128::from(milliseconds),
            other => panic!("{other:?}"),
        };
        prop_assert!(lost.abs() < 60_000 && (lost == 0 || milliseconds < 0), "off by {lost}");
    }

    #[test]
    fn time_functions_do_not_panic(
        pattern in "[GCYxweEyuDMLdaKhHkmsSnzZVOX'\\[\\]:. -]{0,12}",
        text in "[0-9A-Za-z:+/. -]{0,20}",
        number in any::<i64>(),
    ) {
        let payload = format!(
            r#"{{"p":{},"t":{},"n":{number}}}"#,
            Value::from(pattern).to_json(),
            Value::from(text).to_json()
        );
        let sql = "SELECT [parse_time(p, n), parse_time(p, n, t), time_to_epoch(t, p)] AS x FROM 'a/b'";
        prop_assert!(matches!(evaluate(sql, &payload), Ok(Outcome::Matched(_))));
    }

    #[test]
    fn regular_expressions_do_not_panic(
        subject in "[ab€]{0,8}",
        pattern in r"[ab€.*+?()|\\[\\]{}0-9^$]{0,8}",
        replacement in r"[ab$\\{}0-9]{0,8}",
    ) {
        let json = |text: String| Value::from(text).to_json();
        let payload = format!(
            r#"{{"s":{},"p":{},"r":{}}}"#,
            json(subject), json(pattern), json(replacement)
        );
        let sql = "SELECT [regexp_matches(s, p), regexp_substr(s, p), regexp_replace(s, p, r)] AS x FROM 'a/b'";
        prop_assert!(matches!(evaluate(sql, &payload), Ok(Outcome::Matched(_))));
    }

    #[test]
    fn evaluate_and_explain_agree(text in expression()) {
        let sql = format!("SELECT {text} AS x FROM 'a/b' WHERE isUndefined({text}) = false");
        let Ok(statement) = Statement::parse(&sql) else {
            // A well-formed expression can fail only because of its nesting.
            prop_assert!(Statement::parse(&sql).is_err_and(|error| error.expected.contains("within one another")));
            return Ok(());
        };
        let payload = Payload::new(PAYLOAD.as_bytes());
        let message = message("a/b", &payload);
        let outcome = statement.evaluate(&message, &mut counting());
        let explanation = statement.explain(&message, &mut counting());
        prop_assert_eq!(&explanation.outcome, &outcome);
        match outcome {
            Ok(Outcome::Matched(value)) => {
                let json = value.to_json();
                prop_assert_eq!(Value::from_json(&json).map(|value| value.to_json()), Ok(json));
            }
            Ok(Outcome::NotMatched) => {
                prop_assert!(explanation.unmet.is_some());
                prop_assert!(!explanation.undefined.is_empty(), "nothing says why {} is Undefined", sql);
            }
            Err(error) => prop_assert_eq!(error, EvaluationError::TooMuchWork),
        }
    }
}
