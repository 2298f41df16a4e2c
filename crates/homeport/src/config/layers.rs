//! The layers of the configuration. A flag overrides the environment, the environment overrides the file, and the file
//! overrides the default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::config::sections::SECTIONS;
use crate::config::setting::Setting;
use crate::config::value::SettingValue;

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment(String),
    Flag(&'static str),
}

/// The unparsed value of a setting.
#[derive(Clone)]
pub(crate) struct RawSetting {
    pub(crate) text: Option<String>,
    pub(crate) origin: Origin,
}

/// The values of one layer, by table and key.
pub(crate) type Layer = BTreeMap<(&'static str, &'static str), RawSetting>;

/// The effective value of every setting.
pub(crate) struct Values(Layer);

/// Why a configuration is invalid. No message contains a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{origin}: {reason}")]
    Value { origin: String, reason: String },
    #[error("{0} is not valid Unicode")]
    NotUnicode(String),
    #[error("{0}")]
    Together(&'static str),
    #[error("{}, line {line}: {reason}", .path.display())]
    File {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    #[error("cannot read the configuration file {}: {reason}", .path.display())]
    Unreadable { path: PathBuf, reason: String },
}

/// All settings of all sections.
pub(crate) fn all_settings() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().flat_map(|section| section.settings)
}

/// Merges the layers.
///
/// # Errors
/// If an environment variable is not Unicode.
pub(crate) fn resolve(
    flags: &Layer,
    variable: &dyn Fn(&str) -> Option<OsString>,
    file: &Layer,
) -> Result<Values, ConfigError> {
    let mut values = Layer::new();
    for setting in all_settings() {
        let id = (setting.table, setting.key);
        let environment = || -> Result<Option<RawSetting>, ConfigError> {
            let name = setting.variable();
            let Some(text) = variable(&name) else {
                return Ok(None);
            };
            match text.into_string() {
                Ok(text) => Ok(Some(RawSetting {
                    text: Some(text),
                    origin: Origin::Environment(name),
                })),
                Err(_) => Err(ConfigError::NotUnicode(name)),
            }
        };
        let given = match flags.get(&id) {
            Some(given) => given.clone(),
            None => match environment()? {
                Some(given) => given,
                None => file.get(&id).cloned().unwrap_or_else(|| RawSetting {
                    text: setting.default.map(str::to_owned),
                    origin: Origin::Default,
                }),
            },
        };
        values.insert(id, given);
    }
    Ok(Values(values))
}

impl Values {
    /// Parses one setting.
    ///
    /// # Errors
    /// Why its value is invalid, and where it was set.
    pub(crate) fn read<T: SettingValue>(
        &self,
        table: &'static str,
        key: &'static str,
    ) -> Result<T, ConfigError> {
        let given = self.0.get(&(table, key));
        T::parse(given.and_then(|given| given.text.as_deref())).map_err(|reason| {
            let origin = given.map_or(&Origin::Default, |given| &given.origin);
            ConfigError::Value {
                origin: match origin {
                    Origin::File { .. } => format!("{origin}, {table}.{key}"),
                    _ => origin.to_string(),
                },
                reason,
            }
        })
    }

    pub(crate) fn get(&self, setting: &Setting) -> Option<&RawSetting> {
        self.0.get(&(setting.table, setting.key))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { path, line } => write!(formatter, "{}, line {line}", path.display()),
            Self::Environment(name) => write!(formatter, "environment, {name}"),
            Self::Flag(name) => write!(formatter, "flag --{name}"),
        }
    }
}

impl fmt::Debug for Values {
    /// Omits the values, some of which are secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Values").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::file;
    use crate::config::sections::Settings;

    fn flag(table: &'static str, key: &'static str, text: &str) -> Layer {
        let given = RawSetting {
            text: Some(text.to_owned()),
            origin: Origin::Flag("some-flag"),
        };
        Layer::from([((table, key), given)])
    }

    fn environment(name: &'static str, text: &'static str) -> impl Fn(&str) -> Option<OsString> {
        move |requested: &str| (requested == name).then(|| text.into())
    }

    #[track_caller]
    fn cache(
        flags: &Layer,
        variable: &dyn Fn(&str) -> Option<OsString>,
        text: &str,
    ) -> (u64, String) {
        let file = file::parse("some.toml".as_ref(), text).expect("a file");
        let values = resolve(flags, variable, &file).expect("layers");
        let settings = Settings::read(&values).expect("settings");
        let setting = all_settings().find(|setting| setting.key == "cache_mib");
        let given = values.get(setting.expect("a setting")).expect("a value");
        (settings.store.cache_mib.get(), given.origin.to_string())
    }

    #[test]
    fn flag_overrides_environment_file_and_default() {
        let flags = flag("store", "cache_mib", "1");
        let variable = environment("HOMEPORT_CACHE_MIB", "2");
        let file = "[store]\ncache_mib = 3\n";
        let none = |_: &str| None;
        let found = |layers: (u64, &str)| (layers.0, layers.1.to_owned());
        assert_eq!(
            cache(&flags, &variable, file),
            found((1, "flag --some-flag"))
        );
        assert_eq!(
            cache(&Layer::new(), &variable, file),
            found((2, "environment, HOMEPORT_CACHE_MIB"))
        );
        assert_eq!(
            cache(&Layer::new(), &none, file),
            found((3, "some.toml, line 2"))
        );
        assert_eq!(cache(&Layer::new(), &none, ""), found((48, "default")));
    }

    #[test]
    fn invalid_value_is_reported_with_its_origin() {
        let message = |flags: &Layer, variable: &dyn Fn(&str) -> Option<OsString>, text| {
            let file = file::parse("some.toml".as_ref(), text).expect("a file");
            let values = resolve(flags, variable, &file).expect("layers");
            Settings::read(&values).expect_err("refused").to_string()
        };
        let none = |_: &str| None;
        let reason = "\"0\" is not a whole number from 1 to 1048576";
        assert_eq!(
            message(&flag("store", "cache_mib", "0"), &none, ""),
            format!("flag --some-flag: {reason}")
        );
        assert_eq!(
            message(&Layer::new(), &environment("HOMEPORT_CACHE_MIB", "0"), ""),
            format!("environment, HOMEPORT_CACHE_MIB: {reason}")
        );
        assert_eq!(
            message(&Layer::new(), &none, "\n[store]\ncache_mib = 0"),
            format!("some.toml, line 3, store.cache_mib: {reason}")
        );
    }

    #[test]
    fn access_key_needs_its_secret() {
        let values = resolve(
            &flag("dynamodb", "access_key_id", "id"),
            &|_: &str| None,
            &Layer::new(),
        );
        let error = Settings::read(&values.expect("layers")).expect_err("refused");
        assert!(error.to_string().contains("together"), "{error}");
    }

    #[test]
    fn flags_variables_and_keys_are_unique() {
        let mut seen = BTreeSet::new();
        for setting in all_settings() {
            assert!(seen.insert(format!("--{}", setting.flag)), "{setting:?}");
            assert!(seen.insert(setting.variable()), "{setting:?}");
            assert!(seen.insert(setting.path()), "{setting:?}");
        }
    }

    #[test]
    fn established_names_stay() {
        let names: BTreeSet<_> = all_settings()
            .map(|setting| (setting.flag, setting.variable()))
            .collect();
        for (flag, variable) in [
            ("data-dir", "HOMEPORT_DATA_DIR"),
            ("durability", "HOMEPORT_DURABILITY"),
            ("http-listen", "HOMEPORT_HTTP_LISTEN"),
            ("admin-token", "HOMEPORT_ADMIN_TOKEN"),
            ("api-key-pepper", "API_KEY_PEPPER"),
            ("reading-retention-days", "HOMEPORT_READING_RETENTION_DAYS"),
            ("rate-per-second", "HOMEPORT_RATE_PER_SECOND"),
            ("cache-mib", "HOMEPORT_CACHE_MIB"),
            ("dynamodb-listen", "HOMEPORT_DYNAMODB_LISTEN"),
            ("dynamodb-region", "HOMEPORT_DYNAMODB_REGION"),
            ("dynamodb-access-key-id", "HOMEPORT_DYNAMODB_ACCESS_KEY_ID"),
            (
                "dynamodb-secret-access-key",
                "HOMEPORT_DYNAMODB_SECRET_ACCESS_KEY",
            ),
            ("dynamodb-connections", "HOMEPORT_DYNAMODB_CONNECTIONS"),
            ("log", "HOMEPORT_LOG"),
        ] {
            assert!(names.contains(&(flag, variable.to_owned())), "{flag}");
        }
    }
}
