//! Secrets of the server: configured, or created at the first start and kept in the data directory, readable by their
//! owner only.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_store::{Store, SystemClock};
use homeport_systems::alerts::WebhookSecret;
use homeport_systems::api_keys::{self, ApiKeyError, ApiKeys, Pepper};

use crate::config::{self, Settings};

/// Shorter secrets can be guessed.
const LEN_MIN: usize = 16;
/// HS256 needs a key as long as its hash.
const HS256_LEN_MIN: usize = 32;
const RANDOM_BYTES: usize = WebhookSecret::CREATED_BYTES;
const ADMIN_TOKEN_FILE: &str = "admin-token";
const PEPPER_FILE: &str = "api-key-pepper";
const USER_JWT_FILE: &str = "user-jwt-secret";
const RULES_HTTP_FILE: &str = "rules-http-secret";
/// The authority of self-signed certificates, which clients trust, and its key.
pub(crate) const TLS_CA_FILE: &str = "tls-ca.pem";
pub(crate) const TLS_CA_KEY_FILE: &str = "tls-ca-key.pem";

/// The error when API keys are stored but the pepper that hashed them is unknown.
const PEPPER_MISSING: &str = "the store has API keys, but the pepper that hashed them is missing, and with another one they are \
    all invalid; set API_KEY_PEPPER, or copy the file api-key-pepper from the data directory of the server that created them; if \
    it is lost, revoke all keys with `homeport keys revoke`, start again and create new ones";

/// The error when the pepper is not the one that hashed the stored API keys.
const PEPPER_WRONG: &str = "the pepper is not the one that hashed the API keys in this store, so all of them would be rejected; \
    set API_KEY_PEPPER to the earlier value, or restore the file api-key-pepper in the data directory and unset API_KEY_PEPPER; if \
    it is lost, revoke all keys with `homeport keys revoke`, start again and create new ones";

/// Secret files that a data directory may contain.
pub(crate) const FILES: [&str; 6] = [
    ADMIN_TOKEN_FILE,
    PEPPER_FILE,
    USER_JWT_FILE,
    RULES_HTTP_FILE,
    TLS_CA_FILE,
    TLS_CA_KEY_FILE,
];

/// A secret, and whether it was created just now.
pub(crate) struct Secret {
    pub(crate) text: String,
    pub(crate) is_new: bool,
}

/// The pepper of API key hashes. It is created if it is missing and the store has no API keys.
///
/// # Errors
/// When it is missing or wrong and the store has active API keys, so that nothing can replace it by accident.
pub(crate) async fn pepper(settings: &Settings, store: &Arc<dyn Store>) -> anyhow::Result<Secret> {
    let keys = |pepper: &str| {
        let pepper = Pepper::new(pepper.to_owned());
        ApiKeys::new(Arc::clone(store), Arc::new(SystemClock), pepper)
    };
    let pepper = match known_pepper(settings)? {
        Some(known) => known,
        None => {
            store.ensure_tables(&api_keys::schema::tables()).await?;
            if keys("").has_active().await? {
                bail!(PEPPER_MISSING);
            }
            load(None, &settings.data.dir, PEPPER_FILE)?
        }
    };
    match keys(&pepper.text).check_pepper().await {
        Ok(()) => Ok(pepper),
        Err(ApiKeyError::WrongPepper) => bail!(PEPPER_WRONG),
        Err(error) => Err(error).context("checking the pepper of API keys"),
    }
}

/// The pepper of API key hashes, if there is one.
pub(crate) fn known_pepper(settings: &Settings) -> anyhow::Result<Option<Secret>> {
    let given = settings.api_keys.pepper.as_ref();
    let is_known = given.is_some() || settings.data.dir.join(PEPPER_FILE).exists();
    is_known
        .then(|| load(given, &settings.data.dir, PEPPER_FILE))
        .transpose()
}

/// The admin token, created if missing.
pub(crate) fn admin_token(settings: &Settings) -> anyhow::Result<Secret> {
    let token = load(
        settings.admin.token.as_ref(),
        &settings.data.dir,
        ADMIN_TOKEN_FILE,
    )?;
    check_token(&token.text)?;
    Ok(token)
}

/// Rejects a token that no HTTP header can carry.
fn check_token(text: &str) -> anyhow::Result<()> {
    if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || text.trim() != text {
        bail!("the admin token must be printable ASCII without surrounding spaces or line breaks");
    }
    Ok(())
}

/// The secret that signs tokens of app users with HS256, created if missing.
pub(crate) fn user_jwt_secret(settings: &Settings) -> anyhow::Result<Secret> {
    let given = settings.users.jwt_secret.as_ref();
    let secret = load(given, &settings.data.dir, USER_JWT_FILE)?;
    if secret.text.len() < HS256_LEN_MIN {
        bail!("the HS256 secret of app users must have at least {HS256_LEN_MIN} characters");
    }
    Ok(secret)
}

/// The secret that signs HTTP requests of rules. If missing, it is created in the form that Standard Webhooks libraries take.
pub(crate) fn rules_http_secret(
    given: Option<&config::Secret>,
    data_dir: &Path,
) -> anyhow::Result<Secret> {
    let text_of = |random| String::from(WebhookSecret::new(random));
    load_or_make(given, data_dir, RULES_HTTP_FILE, text_of)
}

/// The admin token, if there is one.
pub(crate) fn known_admin_token(settings: &Settings) -> anyhow::Result<Option<Secret>> {
    let is_known =
        settings.admin.token.is_some() || settings.data.dir.join(ADMIN_TOKEN_FILE).exists();
    is_known.then(|| admin_token(settings)).transpose()
}

/// The given secret, or the one in `file` of the data directory, created in hexadecimal if missing.
fn load(given: Option<&config::Secret>, data_dir: &Path, file: &str) -> anyhow::Result<Secret> {
    load_or_make(given, data_dir, file, hex::encode)
}

/// The given secret, or the one in `file` of the data directory. If missing, it is created from random bytes.
fn load_or_make(
    given: Option<&config::Secret>,
    data_dir: &Path,
    file: &str,
    text_of: impl FnOnce([u8; RANDOM_BYTES]) -> String,
) -> anyhow::Result<Secret> {
    if let Some(given) = given {
        let text = given.reveal().to_owned();
        if text.len() < LEN_MIN {
            bail!("the secret given for {file} must have at least {LEN_MIN} characters");
        }
        return Ok(Secret {
            text,
            is_new: false,
        });
    }
    let path = data_dir.join(file);
    match fs::read_to_string(&path) {
        Ok(text) if text.trim().len() >= LEN_MIN => Ok(Secret {
            text: text.trim().to_owned(),
            is_new: false,
        }),
        Ok(_) => bail!(
            "{} contains no secret of at least {LEN_MIN} characters",
            path.display()
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => make(&path, text_of),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// Creates a secret. Its file appears only when it is complete.
fn make(path: &Path, text_of: impl FnOnce([u8; RANDOM_BYTES]) -> String) -> anyhow::Result<Secret> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).context("getting random bytes")?;
    let text = text_of(bytes);
    write_private(path, &format!("{text}\n"))?;
    Ok(Secret { text, is_new: true })
}

/// Writes a file that only its owner can read. It appears only when it is complete.
pub(crate) fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let unfinished = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = || -> std::io::Result<()> {
        let mut file = options.open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        // IMPORTANT: data made with a secret is durable, so the secret's directory entry must be too.
        match path.parent() {
            Some(directory) => fs::File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    };
    write().with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingValue as _;

    fn secret(text: &str) -> config::Secret {
        config::Secret::parse(Some(text)).expect("a secret")
    }

    #[test]
    fn secret_is_created_once_and_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = load(None, directory.path(), "token").expect("a secret");
        let second = load(None, directory.path(), "token").expect("a secret");
        assert!(first.is_new && !second.is_new);
        assert_eq!(first.text, second.text);
        assert_eq!(first.text.len(), 64);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(directory.path().join("token")).expect("a file");
            assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn created_rule_secret_suits_standard_webhooks() {
        let directory = tempfile::tempdir().expect("a directory");
        let created = rules_http_secret(None, directory.path()).expect("a secret");
        let parsed = WebhookSecret::try_from(created.text.clone()).expect("a standard secret");
        assert_eq!(parsed.bytes().len(), RANDOM_BYTES);
        let kept = rules_http_secret(None, directory.path()).expect("a secret");
        assert_eq!(kept.text, created.text);
        // The file of an earlier version stays as it is.
        let earlier = "5c".repeat(RANDOM_BYTES);
        fs::write(directory.path().join(RULES_HTTP_FILE), &earlier).expect("written");
        let kept = rules_http_secret(None, directory.path()).expect("a secret");
        assert_eq!(kept.text, earlier);
    }

    #[test]
    fn short_secret_is_rejected() {
        let directory = tempfile::tempdir().expect("a directory");
        let long = secret(&"x".repeat(16));
        let given = load(Some(&long), directory.path(), "token").expect("a secret");
        assert_eq!(given.text, "x".repeat(16));
        assert!(!directory.path().join("token").exists());
        assert!(load(Some(&secret("short")), directory.path(), "token").is_err());
    }

    #[test]
    fn admin_token_must_fit_into_a_header() {
        for text in ["with-a-line-end\n", " with spaces around ", "ein-Schlüssel"] {
            assert!(check_token(text).is_err(), "{text:?}");
        }
        for text in ["sixteen-characters", "a token with spaces"] {
            assert!(check_token(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn empty_secret_file_is_rejected() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("token"), "\n").expect("written");
        assert!(load(None, directory.path(), "token").is_err());
    }
}
