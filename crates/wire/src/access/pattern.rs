//! Patterns of policies: `*` for any text, `?` for one character, and variables.

use std::borrow::Cow;

/// The longest pattern.
pub(super) const PATTERN_MAX_BYTES: usize = 2048;

/// Whether `text` fits `pattern`, in time that grows with the product of their lengths at most.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut in_text) = (0, 0);
    // The position of the last star, and the end of the text that it matches.
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
/// DIFFERENCE: region and account are not compared. There is only one of each, so policies for any account work unchanged.
pub(super) fn covers(pattern: &str, arn: &str) -> bool {
    covers_by(pattern, arn, matches)
}

/// Whether a resource's pattern covers every ARN that begins with `prefix`.
pub(super) fn covers_all(pattern: &str, prefix: &str) -> bool {
    covers_by(pattern, prefix, |pattern, prefix| {
        // The star at the end matches the rest of every ARN.
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
    // The positions in the pattern that the text so far can reach. From each, some further text reaches the end.
    let mut positions = vec![0];
    for next in beginning.chars() {
        let mut reached = Vec::new();
        for position in with_empty_stars(&pattern, &positions) {
            match pattern.get(position) {
                Some('*') => reached.push(position),
                Some(wanted) if *wanted == '?' || *wanted == next => reached.push(position + 1),
                _ => {}
            }
        }
        reached.dedup();
        positions = reached;
    }
    !positions.is_empty()
}

/// The positions and those after their stars, which may match nothing; sorted, without duplicates.
fn with_empty_stars(pattern: &[char], positions: &[usize]) -> Vec<usize> {
    let mut all = vec![false; pattern.len() + 1];
    for position in positions {
        let mut position = *position;
        while !all[position] {
            all[position] = true;
            if pattern.get(position) == Some(&'*') {
                position += 1;
            }
        }
    }
    (0..all.len()).filter(|position| all[*position]).collect()
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

/// Replaces the variables of a pattern. Wildcards in a value would keep their meaning, but user names cannot contain them.
///
/// # Errors
/// The name of an unknown variable.
pub(super) fn replace_variables(pattern: &str, user_name: &str) -> Result<String, String> {
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
            // `${*}` and `${?}` mean literal characters, which patterns here cannot express.
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
        // A pattern with many stars is matched quickly.
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
    fn variables_are_replaced() {
        assert_eq!(
            replace_variables("a${aws:username}b${$}", "ann"),
            Ok("aannb$".to_owned())
        );
        assert_eq!(
            replace_variables("${aws:PrincipalTag/x}", "ann"),
            Err("aws:PrincipalTag/x".to_owned())
        );
    }
}
