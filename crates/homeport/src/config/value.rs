//! The types that settings can have: how each is read from a text, which every layer brings it to.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use homeport_server::{AddressRanges, AllowedOrigins, BridgeAddress};
use homeport_systems::messages::TopicFilter;

use crate::config::url::shown;

/// What a value looks like in the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Boolean,
    /// A text that is never shown.
    Secret,
}

/// A type that a setting can have.
pub(crate) trait SettingValue: Sized {
    const KIND: Kind;
    const WORDS: &'static [(&'static str, &'static str)] = &[];

    /// Reads a value; `None` when no layer has one.
    ///
    /// # Errors
    /// What it should have been, which must not repeat a secret.
    fn parse(text: Option<&str>) -> Result<Self, String>;
}

/// A text that no log and no message shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

/// A whole number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(u64);

/// Names with values, written `name=value,name=value`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tags(pub(crate) Vec<(String, String)>);

/// Topic filters, written with commas between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicFilters(pub(crate) Vec<TopicFilter>);

/// Where a port is served, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionalPort(pub(crate) Option<SocketAddr>);

/// As many filters fit into one subscription.
const TOPIC_FILTERS_MAX: usize = 100;

/// An address that `http://` and `https://` requests can be sent to.
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

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    pub(crate) fn get(self) -> u64 {
        self.0
    }

    /// For counts of things in memory; no machine holds more than it can count.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
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
            // The text may hold a secret.
            _ => Err("must be a URL that begins with http:// or https://".to_owned()),
        }
    }
}

fn given(text: Option<&str>) -> Result<&str, String> {
    text.ok_or_else(|| "a value is needed".to_owned())
}

impl<T: SettingValue> SettingValue for Option<T> {
    const KIND: Kind = T::KIND;
    const WORDS: &'static [(&'static str, &'static str)] = T::WORDS;

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
            "" => Err("the text cannot be empty".to_owned()),
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
            .map_err(|_| format!("{text:?} is not an address with a port, like 127.0.0.1:8080"))
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

impl<const MIN: u64, const MAX: u64> SettingValue for Whole<MIN, MAX> {
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
                .map_err(|error| format!("{text:?} is no topic filter: {error}"))?;
            if filters.contains(&filter) {
                return Err(format!("the filter {text:?} is there twice"));
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
                return Err(format!("the tag {name:?} is there twice"));
            }
            tags.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self(tags))
    }
}

/// Declares a setting that is one of a few words.
macro_rules! words {
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
            const WORDS: &'static [(&'static str, &'static str)] = &[$(($word, $doc)),+];

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

pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_to_their_bounds() {
        type Small = Whole<1, 10>;
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
    fn tags_are_pairs_without_repeats() {
        let tags = Tags::parse(Some("team=iot, env = prod")).expect("tags");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(tags.0, [pair("team", "iot"), pair("env", "prod")]);
        assert_eq!(Tags::parse(None), Ok(Tags::default()));
        assert!(Tags::parse(Some("team")).is_err());
        assert!(Tags::parse(Some("=x")).is_err());
        assert!(Tags::parse(Some("a=1,a=2")).is_err());
    }

    #[test]
    fn filters_are_each_right_and_there_once() {
        let filters = TopicFilters::parse(Some("van/+/telemetry, $share/g/van/#")).expect("two");
        let shown: Vec<_> = filters.0.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["van/+/telemetry", "$share/g/van/#"]);
        for wrong in ["", "a,", "a/#/b", "a,a", "$share/g"] {
            assert!(TopicFilters::parse(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn urls_name_a_protocol_and_a_host() {
        let url: Url = "http://localhost:8080/".parse().expect("a URL");
        assert_eq!(url.to_string(), "http://localhost:8080");
        for wrong in ["localhost:8080", "http://", "ftp://x", "http://a b"] {
            assert!(wrong.parse::<Url>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::parse(Some("hush")).expect("a secret");
        assert_eq!(format!("{secret:?}"), "(secret)");
        assert_eq!(secret.reveal(), "hush");
    }
}
