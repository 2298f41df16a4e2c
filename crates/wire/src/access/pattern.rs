//! Patterns of policies: `*` for any text, `?` for one character, and variables.

use std::borrow::Cow;

/// A pattern may not be longer than this.
pub(super) const PATTERN_MAX_BYTES: usize = 2048;

/// Whether `text` fits `pattern`, in time that grows with the product of their lengths at most.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut in_text) = (0, 0);
    // Where the last star was, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => match star {
                Some((star_at, taken)) => {
                    at = star_at + 1;
                    in_text = taken + 1;
                    star = Some((star_at, taken + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

/// Whether a resource's pattern covers an ARN.
///
/// DIFFERENCE: region and account are not compared. There is one of each, and policies written for any account work as they
/// are.
pub(super) fn covers(pattern: &str, arn: &str) -> bool {
    covers_by(pattern, arn, matches)
}

/// Whether a resource's pattern covers every ARN that begins with `prefix`.
pub(super) fn covers_all(pattern: &str, prefix: &str) -> bool {
    covers_by(pattern, prefix, |pattern, prefix| {
        // The star at the end takes whatever follows.
        pattern.ends_with('*') && matches(pattern, prefix)
    })
}

/// Whether a resource's pattern covers any ARN that begins with `prefix`.
pub(super) fn covers_some(pattern: &str, prefix: &str) -> bool {
    covers_by(pattern, prefix, matches_beginning)
}

/// Whether any text that begins with `beginning` matches the pattern.
fn matches_beginning(pattern: &str, beginning: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    // The places in the pattern that the text so far can reach. From every place, some further text reaches the end.
    let mut places = vec![0];
    for next in beginning.chars() {
        let mut reached = Vec::new();
        for place in open(&pattern, &places) {
            match pattern.get(place) {
                Some('*') => reached.push(place),
                Some(wanted) if *wanted == '?' || *wanted == next => reached.push(place + 1),
                _ => {}
            }
        }
        reached.dedup();
        places = reached;
    }
    !places.is_empty()
}

/// The places and those behind their stars, which may match nothing; in order and each once.
fn open(pattern: &[char], places: &[usize]) -> Vec<usize> {
    let mut all = vec![false; pattern.len() + 1];
    for place in places {
        let mut place = *place;
        while !all[place] {
            all[place] = true;
            if pattern.get(place) == Some(&'*') {
                place += 1;
            }
        }
    }
    (0..all.len()).filter(|place| all[*place]).collect()
}

fn covers_by(pattern: &str, arn: &str, by_name: impl Fn(&str, &str) -> bool) -> bool {
    let wanted: Vec<&str> = pattern.splitn(6, ':').collect();
    let found: Vec<&str> = arn.splitn(6, ':').collect();
    match (&wanted[..], &found[..]) {
        ([arn, partition, service, _, _, resource], [of, in_partition, in_service, _, _, name]) => {
            [(arn, of), (partition, in_partition), (service, in_service)]
                .iter()
                .all(|(pattern, text)| matches(pattern, text))
                && by_name(resource, name)
        }
        _ => by_name(pattern, arn),
    }
}

/// Fills in a pattern's variables. A value that is filled in is taken literally only as far as it has no wildcard, which names
/// of users cannot have.
///
/// # Errors
/// The name of a variable that is not known.
pub(super) fn fill_in(pattern: &str, user_name: &str) -> Result<String, String> {
    let mut filled = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}') else {
            break;
        };
        filled.push_str(&rest[..start]);
        let name = &rest[start + 2..start + end];
        let value: Cow<'_, str> = match name {
            "aws:username" | "aws:userid" => Cow::Borrowed(user_name),
            "$" => Cow::Borrowed("$"),
            // There is no way to write these literally in a pattern that knows no escapes.
            _ => return Err(name.to_owned()),
        };
        filled.push_str(&value);
        rest = &rest[start + end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_in_iam() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("dynamodb:Get*", "dynamodb:GetItem", true),
            ("dynamodb:Get*", "dynamodb:BatchGetItem", false),
            ("dynamodb:*Item", "dynamodb:PutItem", true),
            ("dynamodb:*Item", "dynamodb:Query", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "axxbyybzc", true),
            ("a*b*c", "axxbyybz", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        // A pattern of many stars takes no time to speak of.
        assert!(!matches(&"*a".repeat(1000), &"a".repeat(900)));
    }

    #[test]
    fn resources_are_compared_without_region_and_account() {
        let table = "arn:aws:dynamodb:us-east-1:000000000000:table/things";
        for (pattern, expected) in [
            ("*", true),
            ("arn:aws:dynamodb:*:*:table/things", true),
            ("arn:aws:dynamodb:eu-west-1:123456789012:table/things", true),
            ("arn:aws:dynamodb:REGION:ACCOUNT:table/things", true),
            ("arn:aws:dynamodb:*:*:table/th*", true),
            ("arn:aws:dynamodb:*", true),
            ("arn:aws:dynamodb:*:*:table/thing", false),
            ("arn:aws:dynamodb:*:*:table/things/index/*", false),
            ("arn:aws:kms:*:*:key/*", false),
        ] {
            assert_eq!(covers(pattern, table), expected, "{pattern}");
        }
        let index = "arn:aws:dynamodb:us-east-1:000000000000:table/things/index/by-kind";
        assert!(covers("arn:aws:dynamodb:*:*:table/things/index/*", index));
        assert!(!covers("arn:aws:dynamodb:*:*:table/things", index));
    }

    #[test]
    fn variables_are_filled_in() {
        assert_eq!(
            fill_in("a${aws:username}b${$}", "ann"),
            Ok("aannb$".to_owned())
        );
        assert_eq!(
            fill_in("${aws:PrincipalTag/x}", "ann"),
            Err("aws:PrincipalTag/x".to_owned())
        );
    }
}
