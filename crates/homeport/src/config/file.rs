//! The configuration file: TOML with a table for each section. An unknown key is an error with its line, because a misspelt
//! setting would silently have no effect.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::config::layers::{ConfigError, Layer, Origin, RawSetting};
use crate::config::sections::SECTIONS;
use crate::config::value::Kind;

/// Maximum size of the file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads a configuration file.
///
/// # Errors
/// If it cannot be read, is not TOML, or contains an unknown table or key or a value of the wrong type.
pub(crate) fn load(path: &Path) -> Result<Layer, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let len = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if len.len() > FILE_BYTES_MAX {
        return Err(unreadable(format!(
            "it is larger than {FILE_BYTES_MAX} bytes"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    parse(path, &text)
}

pub(crate) fn parse(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    let wrong = |at: usize, reason: String| ConfigError::File {
        path: path.to_owned(),
        line: line_of(text, at),
        reason,
    };
    let document = DeTable::parse(text).map_err(|error| {
        // The error's Display shows the line, which may contain a secret.
        let at = error.span().map_or(0, |span| span.start);
        wrong(at, error.message().to_owned())
    })?;
    let mut layer = Layer::new();
    for (name, value) in document.get_ref() {
        let at = name.span().start;
        let section = SECTIONS
            .iter()
            .find(|section| section.table == name.get_ref().as_ref())
            .ok_or_else(|| wrong(at, format!("unknown key {}", name.get_ref())))?;
        let DeValue::Table(table) = value.get_ref() else {
            return Err(wrong(at, format!("{} must be a table", section.table)));
        };
        for (key, value) in table {
            let at = key.span().start;
            let setting = section
                .settings
                .iter()
                .find(|setting| setting.key == key.get_ref().as_ref())
                .ok_or_else(|| {
                    let name = format!("{}.{}", section.table, key.get_ref());
                    wrong(at, format!("unknown key {name}"))
                })?;
            let text_of_value = text_of(setting.kind, value.get_ref())
                .map_err(|expected| wrong(at, format!("{} must be {expected}", setting.path())))?;
            let given = RawSetting {
                text: Some(text_of_value),
                origin: Origin::File {
                    path: path.to_owned(),
                    line: line_of(text, at),
                },
            };
            layer.insert((setting.table, setting.key), given);
        }
    }
    Ok(layer)
}

/// The value as on the command line, or the type that was expected.
fn text_of(kind: Kind, value: &DeValue<'_>) -> Result<String, &'static str> {
    match (kind, value) {
        (Kind::Text | Kind::Secret, DeValue::String(text)) => Ok(text.to_string()),
        (Kind::Integer, DeValue::Integer(number)) => {
            i64::from_str_radix(number.as_str(), number.radix())
                .map(|number| number.to_string())
                .map_err(|_| "a whole number")
        }
        (Kind::Boolean, DeValue::Boolean(value)) => Ok(value.to_string()),
        (Kind::Text | Kind::Secret, _) => Err("a string in quotes"),
        (Kind::Integer, _) => Err("a whole number"),
        (Kind::Boolean, _) => Err("true or false"),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str) -> String {
        match parse("h.toml".as_ref(), text) {
            Ok(_) => panic!("{text:?} was accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn unknown_or_mistyped_key_is_reported_with_its_line() {
        assert_eq!(
            refused("[http]\nlisten = \"127.0.0.1:1\"\nlitsen = 1\n"),
            "h.toml, line 3: unknown key http.litsen"
        );
        assert_eq!(refused("\n[htpt]\n"), "h.toml, line 2: unknown key htpt");
        assert_eq!(refused("http = 3"), "h.toml, line 1: http must be a table");
        assert_eq!(
            refused("[store]\ncache_mib = \"64\""),
            "h.toml, line 2: store.cache_mib must be a whole number"
        );
        assert_eq!(
            refused("[data]\ndir = 7"),
            "h.toml, line 2: data.dir must be a string in quotes"
        );
        assert_eq!(
            refused("[store]\npoint_in_time_recovery = \"yes\""),
            "h.toml, line 2: store.point_in_time_recovery must be true or false"
        );
    }

    #[test]
    fn error_does_not_show_secrets() {
        let message = refused("[admin]\ntoken = \"hush-hush");
        assert!(message.starts_with("h.toml, line 2: "), "{message}");
        assert!(!message.contains("hush"), "{message}");
        assert!(!refused("[admin]\ntoken = [\"hush-hush\"]").contains("hush"));
    }

    #[test]
    fn numbers_may_use_any_toml_notation() {
        let layer = parse("h.toml".as_ref(), "store.cache_mib = 0x4_0").expect("a file");
        let given = &layer[&("store", "cache_mib")];
        assert_eq!(given.text.as_deref(), Some("64"));
    }
}
