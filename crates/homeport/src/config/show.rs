//! Prints settings: the effective ones, a template of all of them, and the reference in `docs/configuration.md`. All come
//! from the declarations.

use std::fmt::Write as _;

use crate::config::layers::{Origin, Values};
use crate::config::sections::SECTIONS;
use crate::config::setting::{Section, Setting};
use crate::config::url::{self, Redacted};
use crate::config::value::Kind;

/// The effective settings as a file that can be read back, without secrets. URLs are reduced to scheme and host, because
/// user info, path and query may contain secrets.
pub(crate) fn effective(values: &Values) -> String {
    let mut text = String::new();
    for section in SECTIONS {
        heading(&mut text, section);
        for setting in section.settings {
            let given = values.get(setting);
            let value = given.and_then(|given| given.text.as_deref());
            let origin = given.map_or(&Origin::Default, |given| &given.origin);
            // A file name may contain line breaks, a comment must not.
            let origin = origin.to_string().replace(char::is_control, " ");
            let key = setting.key;
            let line = match (value, setting.kind) {
                (None, _) => format!("# {key} is not set"),
                (Some(_), Kind::Secret) => format!("# {key} is set and hidden ({origin})"),
                (Some(value), kind) => match url::redacted(value) {
                    Redacted::Nothing => format!("{key} = {} # {origin}", toml_of(kind, value)),
                    Redacted::AllButHost(host) => {
                        format!("# {key} is set; only its host is shown: {host} ({origin})")
                    }
                    Redacted::AllSections => format!("# {key} is set and hidden ({origin})"),
                },
            };
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

/// Every setting with its description and default, commented out.
pub(crate) fn template() -> String {
    let mut text = String::from(
        "# Homeport's settings. A flag overrides the environment, the environment overrides this file,\n\
         # and this file overrides the defaults, which are shown below.\n",
    );
    for section in SECTIONS {
        heading(&mut text, section);
        for setting in section.settings {
            let key = setting.key;
            let _ = writeln!(text, "\n# {}", setting.description());
            for (word, meaning) in setting.choices {
                let _ = writeln!(text, "#   {word}: {}", meaning.trim());
            }
            let _ = match setting.default {
                Some(default) => writeln!(text, "#{key} = {}", toml_of(setting.kind, default)),
                None => writeln!(text, "#{key} = {}", example(setting.kind)),
            };
        }
    }
    text
}

/// The reference of all settings in Markdown.
pub(crate) fn reference() -> String {
    let mut text = String::from(REFERENCE_HEAD);
    for section in SECTIONS {
        let _ = write!(
            text,
            "\n## `[{}]`\n\n{}\n\n",
            section.table,
            section.about.trim()
        );
        text.push_str("| key | flag | variable | default | meaning |\n");
        text.push_str("| --- | --- | --- | --- | --- |\n");
        for setting in section.settings {
            row(&mut text, setting);
        }
    }
    text
}

const REFERENCE_HEAD: &str = "# Configuration

Set any setting with a flag, an environment variable or a key in a file. A flag overrides the environment, the environment
overrides the file, and the file overrides the default. `--config` or `HOMEPORT_CONFIG` names the file; without them, the server
reads `homeport.toml` in the working directory if it exists. The file is TOML, and an unknown key is an error. Relative paths
are relative to the working directory.

```sh
homeport config template > homeport.toml   # a file with every setting and its default
homeport config print                      # the effective settings and where each was set, without secrets
```

Give secrets in the environment or in a file that only the server can read: other users of the machine can see flags. This page
is the output of `homeport config reference`, and a test compares them.
";

fn row(text: &mut String, setting: &Setting) {
    let mut meaning = setting.description().to_owned();
    for (at, (word, what)) in setting.choices.iter().enumerate() {
        let separator = if at == 0 { ": " } else { "; " };
        let _ = write!(meaning, "{separator}`{word}`: {}", what.trim());
    }
    if setting.kind == Kind::Secret {
        meaning.push_str(" (secret)");
    }
    let default = setting
        .default
        .map_or_else(String::new, |default| format!("`{default}`"));
    let _ = writeln!(
        text,
        "| `{}` | `--{}` | `{}` | {default} | {meaning} |",
        setting.key,
        setting.flag,
        setting.variable()
    );
}

fn heading(text: &mut String, section: &Section) {
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "# {}\n[{}]", section.about.trim(), section.table);
}

fn toml_of(kind: Kind, text: &str) -> String {
    match kind {
        // Normalized, because TOML has no leading zeros.
        Kind::Integer => text
            .parse::<u64>()
            .map_or_else(|_| text.to_owned(), |number| number.to_string()),
        Kind::Boolean => text.to_owned(),
        Kind::Text | Kind::Secret => toml::Value::String(text.to_owned()).to_string(),
    }
}

fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Secret => "\"…\"",
        Kind::Integer => "0",
        Kind::Boolean => "false",
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::config::file;
    use crate::config::layers::{Layer, all_settings, resolve};
    use crate::config::sections::Settings;

    #[test]
    fn printed_settings_read_back_unchanged() {
        let odd = "we\"ird\\dir\n# not a comment";
        let variable = |name: &str| match name {
            "HOMEPORT_DATA_DIR" => Some(OsString::from(odd)),
            "HOMEPORT_CACHE_MIB" => Some(OsString::from("007")),
            "HOMEPORT_STORE_TAGS" => Some(OsString::from("a=b")),
            _ => None,
        };
        let values = resolve(&Layer::new(), &variable, &Layer::new()).expect("layers");
        let printed = effective(&values);
        let again = file::parse("again.toml".as_ref(), &printed).expect("what was printed");
        let again = resolve(&Layer::new(), &|_: &str| None, &again).expect("layers");
        let settings = Settings::read(&again).expect("settings");
        assert_eq!(settings.data.dir.to_str(), Some(odd));
        for setting in all_settings() {
            let text = |values: &Values| values.get(setting).and_then(|given| given.text.clone());
            let expected = match setting.key {
                "cache_mib" => Some("7".to_owned()),
                _ => text(&values),
            };
            assert_eq!(text(&again), expected, "{}", setting.path());
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let variable = |name: &str| {
            ["HOMEPORT_ADMIN_TOKEN", "API_KEY_PEPPER"]
                .contains(&name)
                .then(|| OsString::from("hush-hush"))
        };
        let values = resolve(&Layer::new(), &variable, &Layer::new()).expect("layers");
        let printed = effective(&values);
        assert!(!printed.contains("hush"), "{printed}");
        assert!(
            printed.contains("# token is set and hidden (environment, HOMEPORT_ADMIN_TOKEN)\n"),
            "{printed}"
        );
        assert!(printed.contains("# secret_access_key is not set\n"));
    }

    #[test]
    fn secrets_in_urls_are_not_printed() {
        let variable = |name: &str| {
            let text = match name {
                "HOMEPORT_STORE_ENDPOINT_URL" => "http://127.0.0.1:8000",
                "HOMEPORT_PUSH_EXPO_URL" => "https://me:hush@exp.example:8443/x?token=hush#hush",
                "HOMEPORT_USER_JWKS_URL" => "https://issuer.example/hush/jwks.json",
                "HOMEPORT_RULES_SNS_TOPICS" => "arn:a=https://hooks.example/hush",
                "HOMEPORT_MASTER_KEY_COMMAND" => "curl https://me:hush@kms.example/key",
                _ => return None,
            };
            Some(OsString::from(text))
        };
        let values = resolve(&Layer::new(), &variable, &Layer::new()).expect("layers");
        let printed = effective(&values);
        assert!(!printed.contains("hush"), "{printed}");
        for line in [
            "endpoint_url = \"http://127.0.0.1:8000\" # environment, HOMEPORT_STORE_ENDPOINT_URL\n",
            "# expo_url is set; only its host is shown: https://exp.example:8443 (environment",
            "# jwks_url is set; only its host is shown: https://issuer.example (environment",
            "# sns_topics is set and hidden (environment",
            "# master_key_command is set and hidden (environment",
        ] {
            assert!(printed.contains(line), "{line} in {printed}");
        }
    }

    #[test]
    fn template_has_every_setting() {
        let template = template();
        assert!(
            file::parse("t.toml".as_ref(), &template)
                .expect("a template")
                .is_empty()
        );
        let switched_on: String = template
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let layer = file::parse("t.toml".as_ref(), &switched_on).expect("a file");
        assert_eq!(layer.len(), all_settings().count());
    }

    #[test]
    fn reference_equals_the_document() {
        let document = include_str!("../../../../docs/configuration.md");
        assert!(
            document == reference(),
            "docs/configuration.md is stale: homeport config reference > docs/configuration.md"
        );
    }
}
