//! Secrets of the server: from the environment, or made on the first start and kept in the data
//! directory, readable by its owner only.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::config::{self, Settings};

/// Shorter secrets can be guessed.
const LEN_MIN: usize = 16;
/// HS256 asks for a key as long as its hash.
const HS256_LEN_MIN: usize = 32;
const RANDOM_BYTES: usize = 32;
const ADMIN_TOKEN_FILE: &str = "admin-token";
const PEPPER_FILE: &str = "api-key-pepper";
const USER_JWT_FILE: &str = "user-jwt-secret";
const RULES_HTTP_FILE: &str = "rules-http-secret";

/// What is wrong where keys are stored and nothing is known that they were hashed with.
pub(crate) const PEPPER_ELSEWHERE: &str = "there are API keys that were hashed with another pepper, and open nothing with a new one: \
    set API_KEY_PEPPER, or copy the file api-key-pepper from the data directory of the server that made them";

/// The files that may be in a data directory.
pub(crate) const FILES: [&str; 4] = [
    ADMIN_TOKEN_FILE,
    PEPPER_FILE,
    USER_JWT_FILE,
    RULES_HTTP_FILE,
];

/// A secret and whether it was made just now.
pub(crate) struct Secret {
    pub(crate) text: String,
    pub(crate) is_new: bool,
}

/// What is hashed with every API key.
pub(crate) fn pepper(settings: &Settings) -> anyhow::Result<Secret> {
    load(
        settings.api_keys.pepper.as_ref(),
        &settings.data.dir,
        PEPPER_FILE,
    )
}

/// What is hashed with every API key, if there is anything; nothing is made.
pub(crate) fn known_pepper(settings: &Settings) -> anyhow::Result<Option<Secret>> {
    let is_known =
        settings.api_keys.pepper.is_some() || settings.data.dir.join(PEPPER_FILE).exists();
    is_known.then(|| pepper(settings)).transpose()
}

/// The token of operators.
pub(crate) fn admin_token(settings: &Settings) -> anyhow::Result<Secret> {
    let token = load(
        settings.admin.token.as_ref(),
        &settings.data.dir,
        ADMIN_TOKEN_FILE,
    )?;
    check_token(&token.text)?;
    Ok(token)
}

/// Refuses what nobody could send in a header.
fn check_token(text: &str) -> anyhow::Result<()> {
    if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || text.trim() != text {
        bail!(
            "the admin token must be printable ASCII characters, without spaces or line ends around them"
        );
    }
    Ok(())
}

/// What the tokens of app users are signed with, when that is a secret.
pub(crate) fn user_jwt_secret(settings: &Settings) -> anyhow::Result<Secret> {
    let given = settings.users.jwt_secret.as_ref();
    let secret = load(given, &settings.data.dir, USER_JWT_FILE)?;
    if secret.text.len() < HS256_LEN_MIN {
        bail!("the secret for HS256 is shorter than {HS256_LEN_MIN} characters");
    }
    Ok(secret)
}

/// What signs the requests of rules over HTTP.
pub(crate) fn rules_http_secret(settings: &Settings) -> anyhow::Result<Secret> {
    let given = settings.rules.http_secret.as_ref();
    load(given, &settings.data.dir, RULES_HTTP_FILE)
}

/// The token of operators if there is one; none is made.
pub(crate) fn known_admin_token(settings: &Settings) -> anyhow::Result<Option<Secret>> {
    let is_known =
        settings.admin.token.is_some() || settings.data.dir.join(ADMIN_TOKEN_FILE).exists();
    is_known.then(|| admin_token(settings)).transpose()
}

/// The secret that was given, or the one in `file` of the data directory, made if there is none.
fn load(given: Option<&config::Secret>, data_dir: &Path, file: &str) -> anyhow::Result<Secret> {
    if let Some(given) = given {
        let text = given.reveal().to_owned();
        if text.len() < LEN_MIN {
            bail!("the secret given for {file} is shorter than {LEN_MIN} characters");
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
        Ok(_) => bail!("{} holds no secret", path.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => make(&path),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// Makes a secret. It is whole on disk under its name, or not there.
fn make(path: &Path) -> anyhow::Result<Secret> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).context("getting random bytes")?;
    let text = hex::encode(bytes);
    let unfinished = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = || -> std::io::Result<()> {
        let mut file = options.open(&unfinished)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        // IMPORTANT: keys made with a secret are durable, so the secret's name must be as well.
        match path.parent() {
            Some(directory) => fs::File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    };
    write().with_context(|| format!("writing {}", path.display()))?;
    Ok(Secret { text, is_new: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingValue as _;

    fn secret(text: &str) -> config::Secret {
        config::Secret::parse(Some(text)).expect("a secret")
    }

    #[test]
    fn a_secret_is_made_once_and_kept_to_its_owner() {
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
    fn a_given_secret_wins_unless_it_can_be_guessed() {
        let directory = tempfile::tempdir().expect("a directory");
        let long = secret(&"x".repeat(16));
        let given = load(Some(&long), directory.path(), "token").expect("a secret");
        assert_eq!(given.text, "x".repeat(16));
        assert!(!directory.path().join("token").exists());
        assert!(load(Some(&secret("short")), directory.path(), "token").is_err());
    }

    #[test]
    fn an_admin_token_is_one_that_can_be_sent() {
        for text in ["with-a-line-end\n", " with spaces around ", "ein-Schlüssel"] {
            assert!(check_token(text).is_err(), "{text:?}");
        }
        for text in ["sixteen-characters", "a token with spaces"] {
            assert!(check_token(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn an_empty_file_is_not_taken_for_a_secret() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("token"), "\n").expect("written");
        assert!(load(None, directory.path(), "token").is_err());
    }
}
