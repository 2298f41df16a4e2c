//! Credentials for DynamoDB's protocol: one from the settings with full access, and those of a file, each with a policy.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use homeport_wire::{Credential, Policy};
use serde::Deserialize;

use crate::config::Dynamodb;

const FILE_BYTES_MAX: u64 = 1024 * 1024;
const CREDENTIALS_MAX: usize = 1000;
const NAME_MAX_CHARS: usize = 64;
const KEY_ID_MAX_CHARS: usize = 128;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialsFile {
    #[serde(default)]
    credentials: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Name in messages and in the audit log; by default the access key id.
    name: Option<String>,
    access_key_id: String,
    /// The secret, or the file that contains it.
    secret_access_key: Option<String>,
    secret_access_key_file: Option<PathBuf>,
    /// The policy as IAM JSON, or the file that contains it.
    policy: Option<String>,
    policy_file: Option<PathBuf>,
    /// Grants everything. Must be explicit.
    #[serde(default)]
    full_access: bool,
}

/// All credentials of the settings.
pub(crate) fn of(settings: &Dynamodb) -> anyhow::Result<Vec<Credential>> {
    let id = settings.access_key_id.as_ref();
    let mut credentials: Vec<Credential> = id
        .zip(settings.secret_access_key.as_ref())
        .map(|(id, secret)| Credential::new(id, secret.reveal()))
        .into_iter()
        .collect();
    if let Some(path) = &settings.credentials_file {
        credentials.extend(read(path)?);
    }
    let mut seen = HashSet::new();
    for credential in &credentials {
        if !seen.insert(credential.access_key_id.as_str()) {
            bail!(
                "duplicate access key id {:?}; each may be used once",
                credential.access_key_id
            );
        }
    }
    Ok(credentials)
}

fn read(path: &Path) -> anyhow::Result<Vec<Credential>> {
    let text = read_file(path)?;
    // IMPORTANT: the error's Display shows the faulty line, which may contain a secret.
    let file: CredentialsFile = toml::from_str(&text)
        .map_err(|error| anyhow!("{}: {}", path.display(), error.message()))?;
    if file.credentials.is_empty() || file.credentials.len() > CREDENTIALS_MAX {
        bail!(
            "{}: expected 1 to {CREDENTIALS_MAX} [[credentials]]",
            path.display()
        );
    }
    // Relative paths in the file are relative to its directory.
    let beside = path.parent().unwrap_or(Path::new("."));
    file.credentials
        .into_iter()
        .map(|entry| {
            let id = entry.access_key_id.clone();
            credential(entry, beside)
                .with_context(|| format!("{}: credential {id:?}", path.display()))
        })
        .collect()
}

fn credential(entry: Entry, beside: &Path) -> anyhow::Result<Credential> {
    let id = entry.access_key_id;
    let is_id = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric());
    if id.is_empty() || id.len() > KEY_ID_MAX_CHARS || !is_id(&id) {
        bail!("an access key id must have 1 to {KEY_ID_MAX_CHARS} letters and digits");
    }
    let name = entry.name.unwrap_or_else(|| id.clone());
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "+=,.@_-".contains(letter);
    if name.is_empty() || name.len() > NAME_MAX_CHARS || !name.chars().all(is_name) {
        bail!("a name must have 1 to {NAME_MAX_CHARS} letters, digits and +=,.@_-");
    }
    let secret = match (entry.secret_access_key, entry.secret_access_key_file) {
        (Some(secret), None) => secret,
        (None, Some(file)) => read_file(&beside.join(file))?.trim().to_owned(),
        _ => bail!("give either secret_access_key or secret_access_key_file"),
    };
    if secret.is_empty() {
        bail!("the secret access key is empty");
    }
    let policy = match (entry.policy, entry.policy_file, entry.full_access) {
        (Some(policy), None, false) => Some(policy),
        (None, Some(file), false) => Some(read_file(&beside.join(file))?),
        (None, None, true) => None,
        _ => bail!("give one of policy, policy_file and full_access = true"),
    };
    let credential = Credential::new(id, secret).of_user(&name);
    Ok(match policy {
        Some(policy) => credential.limited_by(Policy::parse(&policy, &name)?),
        None => credential,
    })
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    let reading = || format!("reading {}", path.display());
    let size = std::fs::metadata(path).with_context(reading)?.len();
    if size > FILE_BYTES_MAX {
        bail!(
            "{}: the file is larger than {FILE_BYTES_MAX} bytes",
            path.display()
        );
    }
    std::fs::read_to_string(path).with_context(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Credential>, String> {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("secret"), "hush\n").expect("a file");
        std::fs::write(
            directory.path().join("policy.json"),
            r#"{"Statement":[{"Effect":"Allow","Action":"dynamodb:GetItem","Resource":"*"}]}"#,
        )
        .expect("a file");
        let path = directory.path().join("credentials.toml");
        std::fs::write(&path, text).expect("a file");
        read(&path).map_err(|error| {
            let text = format!("{error:#}");
            text.replace(&path.display().to_string(), "FILE")
        })
    }

    #[test]
    fn credentials_with_policies_are_read() {
        let credentials = read_text(
            r#"
[[credentials]]
name = "push-backend"
access_key_id = "AKIA1"
secret_access_key_file = "secret"
policy_file = "policy.json"

[[credentials]]
access_key_id = "AKIA2"
secret_access_key = "hush"
full_access = true
"#,
        )
        .expect("credentials");
        let ids: Vec<_> = credentials
            .iter()
            .map(|credential| credential.access_key_id.as_str())
            .collect();
        assert_eq!(ids, ["AKIA1", "AKIA2"]);
        assert_eq!(credentials[1], Credential::new("AKIA2", "hush"));
        assert_ne!(
            credentials[0],
            Credential::new("AKIA1", "hush").of_user("push-backend"),
            "it has a policy"
        );
    }

    #[test]
    fn invalid_credentials_are_reported_without_secrets() {
        let entry = |rest: &str| format!("[[credentials]]\naccess_key_id = \"AKIA\"\n{rest}");
        for (text, expected) in [
            (String::new(), "FILE: expected 1 to 1000 [[credentials]]"),
            (
                entry("secret_access_key = \"hush\""),
                "FILE: credential \"AKIA\": give one of policy, policy_file and full_access = true",
            ),
            (
                entry("full_access = true"),
                "FILE: credential \"AKIA\": give either secret_access_key or secret_access_key_file",
            ),
            (
                entry("secret_access_key = \"hush\"\npolicy = \"{}\""),
                "FILE: credential \"AKIA\": invalid policy JSON: missing field `Statement` at line 1 column 2",
            ),
            (
                entry("name = \"*\"\nsecret_access_key = \"hush\"\nfull_access = true"),
                "FILE: credential \"AKIA\": a name must have 1 to 64 letters, digits and +=,.@_-",
            ),
        ] {
            let refused = read_text(&text).expect_err("refused");
            assert_eq!(refused, expected);
        }
        let broken = read_text(&entry("secret_access_key = hush")).expect_err("refused");
        assert!(!broken.contains("hush"), "{broken}");
    }
}
