//! The configuration. Every setting is declared once, in `sections`, and can be set by a flag, the environment, a file or
//! its default.

mod file;
mod flags;
mod layers;
mod sections;
mod setting;
mod show;
mod url;
mod value;

use std::path::{Path, PathBuf};

pub(crate) use flags::{
    AllSections, DirectorySections, Flags, FleetSections, KeysSections, MoveSections,
    RulesSections, StoreSections,
};
pub(crate) use layers::{ConfigError, Values};
pub(crate) use sections::{
    Bridge, BridgeProtocolSetting, DurabilitySetting, Dynamodb, Encryption, ForwardedHeaderSetting,
    Http, JwtAlgorithm, LogFormat, Logs, Mqtt, Network, Settings, SmtpTlsSetting,
    Store as StoreSettings, StoreKind, TlsVersionSetting,
};
pub(crate) use show::{effective, reference, template};
pub(crate) use url::shown;
#[cfg(test)]
pub(crate) use value::SettingValue;
pub(crate) use value::{Secret, Url};

use layers::Layer;

/// Environment variable that names the configuration file.
const FILE_VARIABLE: &str = "HOMEPORT_CONFIG";
/// The configuration file if no other is named.
const FILE_NAME: &str = "homeport.toml";

/// Collects the values of all settings.
///
/// # Errors
/// If the file cannot be read or contains an unknown or invalid entry.
pub(crate) fn values<O>(flags: &Flags<O>) -> Result<Values, ConfigError> {
    let named = flags
        .config
        .clone()
        .or_else(|| std::env::var_os(FILE_VARIABLE).map(PathBuf::from));
    let file = match named {
        Some(path) => file::load(&path)?,
        None if Path::new(FILE_NAME).exists() => file::load(Path::new(FILE_NAME))?,
        None => Layer::new(),
    };
    layers::resolve(&flags.layer, &|name: &str| std::env::var_os(name), &file)
}

/// The effective settings of this process.
///
/// # Errors
/// Like [`values`], and if a value is invalid.
pub(crate) fn load<O>(flags: &Flags<O>) -> Result<Settings, ConfigError> {
    Settings::read(&values(flags)?)
}

#[cfg(test)]
impl Settings {
    /// The settings from a file with this text, without flags and environment.
    pub(crate) fn from_file_alone(text: &str) -> Self {
        let file = file::parse(Path::new("test.toml"), text).expect("a file");
        let values = layers::resolve(&Layer::new(), &|_: &str| None, &file).expect("layers");
        Self::read(&values).expect("settings")
    }
}
