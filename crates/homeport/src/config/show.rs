//! Showing settings: the effective ones, a template with every one there is, and the reference in
//! `docs/configuration.md`. All are printed from the declarations.

use std::fmt::Write as _;

use crate::config::concerns::CONCERNS;
use crate::config::layers::{Origin, Values};
use crate::config::setting::{Concern, Setting};
use crate::config::url::{self, Redacted};
use crate::config::value::Kind;

/// The effective settings as a file that can be read back. Secrets are left out, and so is everything of a
/// URL but its scheme and host: user info, path and query may hold secrets.
pub(crate) fn effective(values: &Values) -> String {
    let mut text = String::new();
    for concern in CONCERNS {
        heading(&mut text, concern);
        for setting in concern.settings {
            let given = values.get(setting);
            let value = given.and_then(|given| given.text.as_deref());
            let origin = given.map_or(&Origin::Default, |given| &given.origin);
            // The name of a file may have anything in it, but a comment is one line.
            let origin = origin.to_string().replace(char::is_control, " ");
            let key = setting.key;
            let line = match (value, setting.kind) {
                (None, _) => format!("# {key} is not set"),
                (Some(_), Kind::Secret) => format!("# {key} is set and hidden ({origin})"),
                (Some(value), kind) => match url::redacted(value) {
                    Redacted::Nothing => format!("{key} = {} # {origin}", toml_of(kind, value)),
                    Redacted::AllButHost(host) => {
                        format!("# {key} is set and hidden but for {host} ({origin})")
                    }
                    Redacted::Everything => format!("# {key} is set and hidden ({origin})"),
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
        "# Homeport's settings. A flag counts before the environment, the environment before this file,\n\
         # this file before the defaults, which are those below.\n",
    );
    for concern in CONCERNS {
        heading(&mut text, concern);
        for setting in concern.settings {
            let key = setting.key;
            let _ = writeln!(text, "\n# {}", setting.description());
            for (word, meaning) in setting.words {
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
    for concern in CONCERNS {
        let _ = write!(
            text,
            "\n## `[{}]`\n\n{}\n\n",
            concern.table,
            concern.about.trim()
        );
        text.push_str("| key | flag | variable | default | meaning |\n");
        text.push_str("| --- | --- | --- | --- | --- |\n");
        for setting in concern.settings {
            row(&mut text, setting);
        }
    }
    text
}

const REFERENCE_HEAD: &str = "# Configuration

Every setting can be given as a flag, as a variable of the environment or in a file; a flag counts before the environment, the
environment before the file, the file before the default. The file is the one that `--config` or `HOMEPORT_CONFIG` names, else
`homeport.toml` in the working directory if it is there. It is TOML; a key that nobody knows is an error. Relative paths start
at the working directory.

```sh
homeport config template > homeport.toml   # every setting with its default, to begin with
homeport config print                      # the effective settings, each with where it came from; secrets are left out,
                                           # and so is everything of a URL but scheme and host
```

Secrets are better given in the environment or in a file that only the server can read than as flags, which every user of the
machine can see. This page is the output of `homeport config reference`, and a test compares them.
";

fn row(text: &mut String, setting: &Setting) {
    let mut meaning = setting.description().to_owned();
    for (at, (word, what)) in setting.words.iter().enumerate() {
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

fn heading(text: &mut String, concern: &Concern) {
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "# {}\n[{}]", concern.about.trim(), concern.table);
}

fn toml_of(kind: Kind, text: &str) -> String {
    match kind {
        // Written anew, since TOML has no leading zeros.
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
    use crate::config::concerns::Settings;
    use crate::config::file;
    use crate::config::layers::{Layer, all_settings, resolve};

    #[test]
    fn what_is_printed_reads_back_as_the_same() {
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
    fn urls_are_printed_without_their_secrets() {
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
            "# expo_url is set and hidden but for https://exp.example:8443 (environment",
            "# jwks_url is set and hidden but for https://issuer.example (environment",
            "# sns_topics is set and hidden (environment",
            "# master_key_command is set and hidden (environment",
        ] {
            assert!(printed.contains(line), "{line} in {printed}");
        }
    }

    #[test]
    fn the_template_has_every_setting_and_can_be_switched_on() {
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
    fn the_reference_is_what_the_document_says() {
        let document = include_str!("../../../../docs/configuration.md");
        assert!(
            document == reference(),
            "docs/configuration.md is stale: homeport config reference > docs/configuration.md"
        );
    }
}
