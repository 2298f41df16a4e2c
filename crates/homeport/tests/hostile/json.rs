//! Mutates a request's JSON: its structure as a tree, and what no tree can express as text.

use serde_json::{Map, Value, json};

use homeport_simulate::SeededRandom;

/// Placeholder in a tree for raw text.
const RAW_START: &str = "\u{1}raw:";
const RAW_END: &str = "\u{1}";

const NUMBERS: [&str; 14] = [
    "1e999",
    "-1e-999",
    "99999999999999999999999999999999999999",
    "123456789012345678901234567890123456789012345",
    "-0",
    "9.9999999999999999999999999999999999999E+125",
    "1e126",
    "1e-131",
    "9223372036854775808",
    "-9223372036854775809",
    "4294967296",
    "0.1e-0000000000000000000000001",
    "2147483648",
    "1.7976931348623157e309",
];
const NO_NUMBERS: [&str; 8] = ["NaN", "Infinity", "0x10", "1_000", "", " 1", "१२३", "1e"];
const TEXTS: [&str; 14] = [
    "",
    "\0",
    "\u{feff}",
    "\u{202e}abc",
    "e\u{301}\u{301}\u{301}",
    "𝄞𝄞𝄞",
    "#a",
    ":a",
    "a.b[99999999999999999999]",
    "SET",
    "arn:aws:dynamodb:us-east-1:000000000000:table/",
    "../../etc/passwd",
    "=",
    "AAE",
];
/// Strings that need JSON escapes, some of them invalid.
const ESCAPES: [&str; 7] = [
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\u0000\"",
    "\"\\ud834\\udd1e\"",
    "\"\\x41\"",
    "\"\\u12\"",
    "\"\t\n\"",
];
const WORDS: [&str; 34] = [
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    "((((",
    "=",
    "<>",
    "<",
    ">=",
    "BETWEEN",
    "IN",
    ",",
    ".",
    "[0]",
    "[",
    "#c",
    "#x",
    ":a",
    ":p",
    ":zzz",
    "pk",
    "sk",
    "v.list[1]",
    "size(",
    "contains(",
    "attribute_type(",
    "if_not_exists(",
    "list_append(",
    "SET",
    "REMOVE",
    "ADD",
    "DELETE",
    "+",
];

/// A mutated copy of a request's body, as text.
pub(crate) fn mutate(body: &Value, random: &mut SeededRandom) -> Vec<u8> {
    let mut body = body.clone();
    for _ in 0..=random.below(3) {
        mutate_once(&mut body, random);
    }
    let mut text = String::new();
    write(&body, random, &mut text);
    put_raw_in(&text, random).into_bytes()
}

fn mutate_once(root: &mut Value, random: &mut SeededRandom) {
    if random.once_in(3) {
        let depth = 1 + random.below(6);
        let Some(node) = descend(root, depth, random) else {
            return;
        };
        match random.below(6) {
            0..2 => drop_member(node, random),
            2 => *node = other_type(random),
            3 => *node = raw(["deep", "number", "escape"][random.below(3)]),
            4 => add_member(node, random),
            _ => repeat(node, random),
        }
        return;
    }
    // Strings mostly replace strings, because a wrong type is rejected before other checks.
    let Some(leaf) = descend(root, usize::MAX, random) else {
        return;
    };
    if leaf.is_string() || random.once_in(10) {
        *leaf = Value::String(match random.below(10) {
            0..2 => long_text(random),
            2..5 => (*random.pick(&TEXTS)).to_owned(),
            5..7 => (*random.pick(&NUMBERS)).to_owned(),
            7 => (*random.pick(&NO_NUMBERS)).to_owned(),
            _ => expression(random),
        });
    } else if leaf.is_number() {
        *leaf = json!(*random.pick(&[-1, 0, 1, 2, 999, 1_000_001, i64::from(i32::MAX), i64::MAX]));
    }
}

/// A node at most `depth` levels down.
fn descend<'a>(
    node: &'a mut Value,
    depth: usize,
    random: &mut SeededRandom,
) -> Option<&'a mut Value> {
    let is_leaf = match node {
        Value::Object(members) => members.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        _ => true,
    };
    if depth == 0 || is_leaf {
        return Some(node);
    }
    let next = match node {
        Value::Object(members) => {
            let at = random.below(members.len());
            members.values_mut().nth(at)
        }
        Value::Array(elements) => {
            let at = random.below(elements.len());
            elements.get_mut(at)
        }
        _ => None,
    };
    next.and_then(|next| descend(next, depth - 1, random))
}

fn drop_member(node: &mut Value, random: &mut SeededRandom) {
    match node {
        Value::Object(members) if !members.is_empty() => {
            let at = random.below(members.len());
            if let Some(name) = members.keys().nth(at).cloned() {
                members.remove(&name);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            elements.remove(random.below(elements.len()));
        }
        _ => *node = Value::Null,
    }
}

fn add_member(node: &mut Value, random: &mut SeededRandom) {
    let value = other_type(random);
    match node {
        Value::Object(members) => {
            let names = [
                "S",
                "N",
                "NS",
                "M",
                "TableName",
                "",
                "\u{0}",
                "KeyConditions",
                "pk",
            ];
            members.insert((*random.pick(&names)).to_owned(), value);
        }
        Value::Array(elements) => elements.push(value),
        _ => *node = value,
    }
}

/// Repeats a value beyond every limit.
fn repeat(node: &mut Value, random: &mut SeededRandom) {
    let copies = *random.pick(&[2, 26, 101, 300]);
    let copy = node.clone();
    match node {
        Value::Array(elements) => {
            let first = elements.first().cloned().unwrap_or(copy);
            elements.extend(std::iter::repeat_n(first, copies));
        }
        Value::Object(members) => {
            let first = members.values().next().cloned().unwrap_or(copy);
            for number in 0..copies {
                members.insert(format!("#a{number}"), first.clone());
            }
        }
        _ => *node = Value::Array(vec![copy; copies]),
    }
}

fn other_type(random: &mut SeededRandom) -> Value {
    match random.below(10) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(1.5e300),
        4 => json!([]),
        5 => Value::Object(Map::new()),
        6 => json!({"S": "x"}),
        7 => json!({"N": *random.pick(&NUMBERS)}),
        8 => json!({"N": *random.pick(&NO_NUMBERS)}),
        _ => json!([[{"L": [{"M": {}}]}], "x", 1]),
    }
}

fn long_text(random: &mut SeededRandom) -> String {
    let unit = *random.pick(&["a", "ü", "𝄞", "(", "a.", "NOT "]);
    // Mostly around the limits of names, keys and expressions, sometimes beyond the item size.
    let len = if random.once_in(20) {
        450_000
    } else {
        *random.pick(&[255, 256, 1025, 2049, 4097, 9000])
    };
    unit.repeat(len / unit.len() + 1)
}

fn expression(random: &mut SeededRandom) -> String {
    let words = 1 + random.below(30);
    let words: Vec<&str> = (0..words).map(|_| *random.pick(&WORDS)).collect();
    words.join(if random.once_in(4) { "" } else { " " })
}

fn raw(kind: &str) -> Value {
    Value::String(format!("{RAW_START}{kind}{RAW_END}"))
}

/// Writes JSON text, which may contain duplicate members.
fn write(value: &Value, random: &mut SeededRandom, out: &mut String) {
    match value {
        Value::Object(members) => {
            out.push('{');
            let mut is_first = true;
            for (name, value) in members {
                let times = if random.once_in(150) { 2 } else { 1 };
                for _ in 0..times {
                    if !is_first {
                        out.push(',');
                    }
                    is_first = false;
                    out.push_str(&Value::from(name.as_str()).to_string());
                    out.push(':');
                    write(value, random, out);
                }
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for (at, value) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(value, random, out);
            }
            out.push(']');
        }
        _ => out.push_str(&value.to_string()),
    }
}

fn put_raw_in(text: &str, random: &mut SeededRandom) -> String {
    let mut text = text.to_owned();
    for kind in ["deep", "number", "escape"] {
        // As in a JSON string.
        let place = format!("\"\\u0001raw:{kind}\\u0001\"");
        while let Some(at) = text.find(&place) {
            let with = match kind {
                "deep" => deep(random),
                "number" => (*random.pick(&NUMBERS)).to_owned(),
                _ => (*random.pick(&ESCAPES)).to_owned(),
            };
            text.replace_range(at..at + place.len(), &with);
        }
    }
    text
}

/// Nesting of any depth, closed or not.
fn deep(random: &mut SeededRandom) -> String {
    let (open, middle, close) = *random.pick(&[
        ("[", "1", "]"),
        ("{\"M\":{\"a\":", "{\"S\":\"x\"}", "}}"),
        ("{\"L\":[", "{\"S\":\"x\"}", "]}"),
        ("{\"a\":", "1", "}"),
    ]);
    let depth = *random.pick(&[31, 32, 33, 127, 128, 129, 1000, 20_000]);
    let closed = if random.once_in(5) { depth / 2 } else { depth };
    [open.repeat(depth), middle.to_owned(), close.repeat(closed)].concat()
}
