//! Decides which part of a URL may be shown. User info, path, query and fragment may contain secrets, as those of webhooks
//! do.

const SCHEME_END: &str = "://";

/// The part of a setting that must be hidden.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redacted {
    Nothing,
    /// AllSections but this scheme and host.
    AllButHost(String),
    /// AllSections, because the text contains URLs in another form.
    AllSections,
}

/// The part of a setting that must be hidden. A list of schemes and hosts, such as allowed origins, is shown. A text with
/// `@` is one URL, whose password may contain commas.
pub(crate) fn redacted(text: &str) -> Redacted {
    let mut entries = text.split(',').map(str::trim);
    let is_list = !text.contains('@');
    match is_list && entries.all(|entry| redacted_url(entry) == Redacted::Nothing) {
        true => Redacted::Nothing,
        false => redacted_url(text),
    }
}

fn redacted_url(text: &str) -> Redacted {
    let Some((scheme, rest)) = text.split_once(SCHEME_END) else {
        return Redacted::Nothing;
    };
    let is_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    if scheme.is_empty() || !scheme.chars().all(is_scheme) || rest.contains(SCHEME_END) {
        return Redacted::AllSections;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host == rest.trim_end_matches('/') {
        return Redacted::Nothing;
    }
    Redacted::AllButHost(format!("{scheme}{SCHEME_END}{host}"))
}

/// A URL for messages, without secrets.
pub(crate) fn shown(text: &str) -> String {
    match redacted(text) {
        Redacted::Nothing => text.to_owned(),
        Redacted::AllButHost(host) => format!("{host}/…"),
        Redacted::AllSections => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scheme_and_host_are_shown() {
        let host = |text: &str| Redacted::AllButHost(text.to_owned());
        for (text, expected) in [
            ("data", Redacted::Nothing),
            ("http://host", Redacted::Nothing),
            ("http://[::1]:8000/", Redacted::Nothing),
            ("mqtts://broker.example:8883", Redacted::Nothing),
            ("http://me@host", host("http://host")),
            ("http://me:p@ss@host:1/", host("http://host:1")),
            ("https://host/services/T0/B0/x", host("https://host")),
            ("https://host?key=x", host("https://host")),
            ("https://host#x", host("https://host")),
            ("a=https://host", Redacted::AllSections),
            ("https://host, https://other:1,host", Redacted::Nothing),
            ("https://host,https://me@other", Redacted::AllSections),
            ("https://host,https://other/x", Redacted::AllSections),
            ("https://host/a,b", host("https://host")),
            ("https://me:hu,sh@host", host("https://host")),
            ("https://me:hu,https://sh@host", Redacted::AllSections),
            ("host,me:https://hush@host", Redacted::AllSections),
            ("://x", Redacted::AllSections),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
        assert_eq!(shown("https://host/secret"), "https://host/…");
    }
}
