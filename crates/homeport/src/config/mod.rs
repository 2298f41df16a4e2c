//! The configuration: every setting is declared once, in `concerns`, and given in layers: flags, the
//! environment, a file, defaults.

mod concerns;
mod file;
mod flags;
mod layers;
mod setting;
mod show;
mod url;
mod value;

use std::path::{Path, PathBuf};

pub(crate) use concerns::{
    Bridge, BridgeProtocolWord, DurabilityWord, Dynamodb, Encryption, ForwardedHeaderWord, Http,
    JwtAlgorithm, LogFormat, Logs, Mqtt, Network, Settings, SmtpTlsWord, Store as StoreSettings,
    StoreKind,
};
pub(crate) use flags::{Everything, Flags, OnDirectory, OnFleet, OnKeys, OnMove, OnRules, OnStore};
pub(crate) use layers::{ConfigError, Values};
pub(crate) use show::{effective, reference, template};
pub(crate) use url::shown;
#[cfg(test)]
pub(crate) use value::SettingValue;
pub(crate) use value::{Secret, Url};

use layers::Layer;

/// Names the configuration file.
const FILE_VARIABLE: &str = "HOMEPORT_CONFIG";
/// Read from the working directory when no other file is named.
const FILE_NAME: &str = "homeport.toml";

/// Reads what this process was given.
///
/// # Errors
/// When the file cannot be read or has something that does not belong.
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
/// As for [`values`], and when a value cannot be.
pub(crate) fn load<O>(flags: &Flags<O>) -> Result<Settings, ConfigError> {
    Settings::read(&values(flags)?)
}

#[cfg(test)]
impl Settings {
    /// What a file with this text means where nothing else is given.
    pub(crate) fn from_file_alone(text: &str) -> Self {
        let file = file::parse(Path::new("test.toml"), text).expect("a file");
        let values = layers::resolve(&Layer::new(), &|_: &str| None, &file).expect("layers");
        Self::read(&values).expect("settings")
    }
}
