//! The types of settings, and how each is parsed from text, which is what every layer provides.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use homeport_server::{AddressRanges, AllowedOrigins, BridgeAddress};
use homeport_systems::messages::TopicFilter;

use crate::config::url::shown;

/// The type of a value in the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Boolean,
    /// A string that is never shown.
    Secret,
}

/// A type of settings.
pub(crate) trait SettingValue: Sized {
    const KIND: Kind;
    const CHOICES: &'static [(&'static str, &'static str)] = &[];

    /// Parses a value; `None` if no layer sets it.
    ///
    /// # Errors
    /// The expected form, without the value, which may be a secret.
    fn parse(text: Option<&str>) -> Result<Self, String>;
}

/// A string that no log and no message shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

/// An integer within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoundedInteger<const MIN: u64, const MAX: u64>(u64);

/// Names with values, as `name=value,name=value`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tags(pub(crate) Vec<(String, String)>);

/// Topic filters, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicFilters(pub(crate) Vec<TopicFilter>);

/// The address of a port, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionalPort(pub(crate) Option<SocketAddr>);

/// The limit of one subscription.
const TOPIC_FILTERS_MAX: usize = 100;

/// An `http://` or `https://` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url(String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(secret)")
    }
}

impl<const MIN: u64, const MAX: u64> BoundedInteger<MIN, MAX> {
    pub(crate) fn get(self) -> u64 {
        self.0
    }

    /// The number as a count of things in memory.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Url {
    pub(crate) fn has_tls(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::str::FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let host = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"))
            .map(|rest| rest.trim_end_matches('/'));
        match host {
            Some(host) if !host.is_empty() && !host.contains(char::is_whitespace) => {
                Ok(Self(text.trim_end_matches('/').to_owned()))
            }
            // Without the text, which may contain a secret.
            _ => Err("expected a URL that begins with http:// or https://".to_owned()),
        }
    }
}

fn given(text: Option<&str>) -> Result<&str, String> {
    text.ok_or_else(|| "a value is needed".to_owned())
}

impl<T: SettingValue> SettingValue for Option<T> {
    const KIND: Kind = T::KIND;
    const CHOICES: &'static [(&'static str, &'static str)] = T::CHOICES;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        text.map(|text| T::parse(Some(text))).transpose()
    }
}

impl std::str::FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(Some(text))
    }
}

impl SettingValue for Secret {
    const KIND: Kind = Kind::Secret;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        match given(text)? {
            "" => Err("a secret cannot be empty".to_owned()),
            text => Ok(Self(text.to_owned())),
        }
    }
}

impl SettingValue for String {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        match given(text)? {
            "" => Err("the value cannot be empty".to_owned()),
            text => Ok(text.to_owned()),
        }
    }
}

impl SettingValue for PathBuf {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        String::parse(text).map(Self::from)
    }
}

impl SettingValue for SocketAddr {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        let text = given(text)?;
        text.parse()
            .map_err(|_| format!("{text:?} is not an address with a port, such as 127.0.0.1:8080"))
    }
}

impl SettingValue for OptionalPort {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        match given(text)? {
            "off" => Ok(Self(None)),
            text => match text.parse() {
                Ok(address) => Ok(Self(Some(address))),
                Err(_) => Err(format!(
                    "{text:?} is neither off nor an address with a port, like 127.0.0.1:8000"
                )),
            },
        }
    }
}

impl SettingValue for AddressRanges {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        let ranges = text.unwrap_or_default().parse();
        ranges.map_err(|error| format!("{error}"))
    }
}

impl SettingValue for AllowedOrigins {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        let allowed = text.unwrap_or_default().parse();
        allowed.map_err(|error| format!("{error}"))
    }
}

impl SettingValue for bool {
    const KIND: Kind = Kind::Boolean;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        match given(text)? {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(format!("{other:?} is neither true nor false")),
        }
    }
}

impl<const MIN: u64, const MAX: u64> SettingValue for BoundedInteger<MIN, MAX> {
    const KIND: Kind = Kind::Integer;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        let text = given(text)?;
        match text.parse() {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            _ => Err(format!(
                "{text:?} is not a whole number from {MIN} to {MAX}"
            )),
        }
    }
}

impl SettingValue for Url {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        given(text)?.parse()
    }
}

impl SettingValue for BridgeAddress {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        given(text)?.parse()
    }
}

impl SettingValue for TopicFilters {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        let mut filters: Vec<TopicFilter> = Vec::new();
        for text in given(text)?.split(',').map(str::trim) {
            let filter = text
                .parse()
                .map_err(|error| format!("invalid topic filter {text:?}: {error}"))?;
            if filters.contains(&filter) {
                return Err(format!("duplicate filter {text:?}"));
            }
            filters.push(filter);
        }
        if filters.len() > TOPIC_FILTERS_MAX {
            return Err(format!("there are more than {TOPIC_FILTERS_MAX} filters"));
        }
        Ok(Self(filters))
    }
}

impl SettingValue for Tags {
    const KIND: Kind = Kind::Text;

    fn parse(text: Option<&str>) -> Result<Self, String> {
        let text = text.unwrap_or_default();
        let mut tags: Vec<(String, String)> = Vec::new();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .map(|(name, value)| (name.trim(), value.trim()))
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| format!("{:?} is not of the form name=value", shown(pair)))?;
            if tags.iter().any(|(other, _)| other == name) {
                return Err(format!("duplicate name {name:?}"));
            }
            tags.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self(tags))
    }
}

/// Declares a setting whose value is one of a few words.
macro_rules! choices {
    (
        #[doc = $about:literal]
        $name:ident {
            $(
                #[doc = $doc:literal]
                $variant:ident = $word:literal,
            )+
        }
    ) => {
        #[doc = $about]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $(
                #[doc = $doc]
                $variant,
            )+
        }

        impl $crate::config::value::SettingValue for $name {
            const KIND: $crate::config::value::Kind = $crate::config::value::Kind::Text;
            const CHOICES: &'static [(&'static str, &'static str)] = &[$(($word, $doc)),+];

            fn parse(text: Option<&str>) -> Result<Self, String> {
                match text {
                    $(Some($word) => Ok(Self::$variant),)+
                    other => Err(format!(
                        "{:?} is not one of {}",
                        other.unwrap_or_default(),
                        [$($word),+].join(", ")
                    )),
                }
            }
        }
    };
}

pub(crate) use choices;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_within_bounds() {
        type Small = BoundedInteger<1, 10>;
        assert_eq!(Small::parse(Some("10")).map(Small::get), Ok(10));
        for wrong in ["0", "11", "-1", "1.5", "", "ten"] {
            assert!(Small::parse(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ports_can_be_switched_off() {
        assert_eq!(OptionalPort::parse(Some("off")), Ok(OptionalPort(None)));
        let address = SocketAddr::from(([127, 0, 0, 1], 8000));
        let given = OptionalPort::parse(Some("127.0.0.1:8000"));
        assert_eq!(given, Ok(OptionalPort(Some(address))));
        for invalid in ["", "no", "127.0.0.1"] {
            assert!(OptionalPort::parse(Some(invalid)).is_err(), "{invalid}");
        }
    }

    #[test]
    fn tags_are_unique_pairs() {
        let tags = Tags::parse(Some("team=iot, env = prod")).expect("tags");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(tags.0, [pair("team", "iot"), pair("env", "prod")]);
        assert_eq!(Tags::parse(None), Ok(Tags::default()));
        assert!(Tags::parse(Some("team")).is_err());
        assert!(Tags::parse(Some("=x")).is_err());
        assert!(Tags::parse(Some("a=1,a=2")).is_err());
    }

    #[test]
    fn topic_filters_are_valid_and_unique() {
        let filters = TopicFilters::parse(Some("van/+/telemetry, $share/g/van/#")).expect("two");
        let shown: Vec<_> = filters.0.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["van/+/telemetry", "$share/g/van/#"]);
        for wrong in ["", "a,", "a/#/b", "a,a", "$share/g"] {
            assert!(TopicFilters::parse(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn url_needs_scheme_and_host() {
        let url: Url = "http://localhost:8080/".parse().expect("a URL");
        assert_eq!(url.to_string(), "http://localhost:8080");
        for wrong in ["localhost:8080", "http://", "ftp://x", "http://a b"] {
            assert!(wrong.parse::<Url>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn secret_is_not_printed() {
        let secret = Secret::parse(Some("hush")).expect("a secret");
        assert_eq!(format!("{secret:?}"), "(secret)");
        assert_eq!(secret.reveal(), "hush");
    }
}
