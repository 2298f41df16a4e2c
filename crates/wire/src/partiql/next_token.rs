//! `NextToken`: where the next page of a SELECT starts.
//!
//! A token is valid for one statement with its parameters, exactly as they were sent. It is opaque but not secret: its key is
//! also in `LastEvaluatedKey`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use homeport_item::{Item, Value, json};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::failure::Failure;

/// Bytes of the digest of the statement in a token.
const FINGERPRINT_BYTES: usize = 16;

/// The start of the next page.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Resume {
    /// The position among the partitions of the statement; 0 for a scan.
    pub(crate) partition: usize,
    /// The key before the page; `None` at the start of a partition.
    pub(crate) start: Option<Item>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    statement: String,
    partition: usize,
    start: Option<Item>,
}

/// Identifies a statement with its parameters.
pub(crate) fn fingerprint(statement: &str, parameters: &[Value]) -> String {
    let mut digest = Sha256::new();
    digest.update(statement.as_bytes());
    let mut out = Vec::new();
    for parameter in parameters {
        out.push(0);
        let wrapped = Item::new().with("p", parameter.clone());
        json::write_item(&wrapped, &mut out);
    }
    digest.update(&out);
    URL_SAFE_NO_PAD.encode(&digest.finalize()[..FINGERPRINT_BYTES])
}

impl Resume {
    pub(crate) fn token(&self, fingerprint: &str) -> Result<String, Failure> {
        let content = Content {
            statement: fingerprint.to_owned(),
            partition: self.partition,
            start: self.start.clone(),
        };
        let bytes = serde_json::to_vec(&content).map_err(|error| Failure::internal(&error))?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    pub(crate) fn from_token(token: &str, fingerprint: &str) -> Result<Self, Failure> {
        let content: Content = URL_SAFE_NO_PAD
            .decode(token)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| Failure::validation("Invalid NextToken"))?;
        if content.statement != fingerprint {
            return Err(Failure::validation("NextToken does not match request"));
        }
        Ok(Self {
            partition: content.partition,
            start: content.start,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_valid_for_its_own_statement_only() {
        let print = fingerprint("SELECT * FROM t", &[Value::from(1)]);
        let resume = Resume {
            partition: 2,
            start: Some(Item::new().with("pk", "a")),
        };
        let token = resume.token(&print).expect("a token");
        assert_eq!(Resume::from_token(&token, &print), Ok(resume));
        let text = |token: &str, print: &str| {
            let failure = Resume::from_token(token, print).expect_err("refused");
            failure.text().unwrap_or_default().to_owned()
        };
        for other in [
            fingerprint("SELECT * FROM t", &[Value::from(2)]),
            fingerprint("SELECT * FROM u", &[Value::from(1)]),
        ] {
            assert_eq!(text(&token, &other), "NextToken does not match request");
        }
        assert_eq!(text("!", &print), "Invalid NextToken");
        assert_eq!(text(&token[1..], &print), "Invalid NextToken");
    }
}
