//! The nesting depth of a request. DynamoDB treats very deep requests differently.

/// DynamoDB reads deeper requests in its older way, whatever the operation.
const USUAL_MAX: usize = 127;

/// Whether this JSON is nested so deeply that DynamoDB reads it in the older way.
pub(crate) fn is_very_deep(json: &[u8]) -> bool {
    let mut depth = 0usize;
    let mut in_text = false;
    let mut escaped = false;
    for byte in json {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > USUAL_MAX {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_brackets_outside_strings_count() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(!is_very_deep(nested(127).as_bytes()));
        assert!(is_very_deep(nested(128).as_bytes()));
        assert!(!is_very_deep("[],".repeat(1000).as_bytes()));
        let text = format!(r#"{{"a\"":"{}"}}"#, "[".repeat(1000));
        assert!(!is_very_deep(text.as_bytes()));
    }
}
