//! Passwords: what is accepted, and argon2id hashes made on blocking threads, a few at a time.

use std::fmt;
use std::sync::{Arc, LazyLock};

use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use super::totp::base32;
use super::{PeopleError, random};

/// Shortest and longest password, in characters. Nothing else is required of it.
pub const PASSWORD_CHARS_MIN: usize = 12;
pub const PASSWORD_CHARS_MAX: usize = 256;
/// Hashes that are computed at one time; each needs 19 MiB.
pub const HASHES_MAX: usize = 2;
/// Hashes that wait for their turn.
pub const HASHES_WAITING_MAX: usize = 32;

/// Memory in KiB, passes and lanes, as OWASP recommends for argon2id.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const SALT_BYTES: usize = 16;
/// Random bytes of a generated password; 24 characters.
const GENERATED_BYTES: usize = 15;
/// The most common passwords that are long enough to be accepted, in lower case.
const COMMON: &str = include_str!("common_passwords.txt");

/// A password that someone may choose. Its `Debug` form hides it.
#[derive(Clone)]
pub struct Password(String);

/// Computes hashes; shared by all people.
pub(super) struct Hasher {
    running: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Password {
    /// # Errors
    /// If it is too short, too long or one of the most common ones.
    pub fn new(text: String) -> Result<Self, PeopleError> {
        let chars = text.chars().take(PASSWORD_CHARS_MAX + 1).count();
        if !(PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX).contains(&chars) {
            return Err(PeopleError::InvalidPassword(
                "the password must be 12 to 256 characters",
            ));
        }
        if COMMON.lines().any(|common| common == text.to_lowercase()) {
            return Err(PeopleError::InvalidPassword(
                "this password is one of the most common ones; choose another",
            ));
        }
        Ok(Self(text))
    }

    /// A random password, and its text to be shown once.
    #[must_use]
    pub fn generate() -> (Self, String) {
        let text = base32(&random::<GENERATED_BYTES>()).to_lowercase();
        (Self(text.clone()), text)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            running: Arc::new(Semaphore::new(HASHES_MAX)),
            waiting: Semaphore::new(HASHES_MAX + HASHES_WAITING_MAX),
        }
    }
}

impl Hasher {
    pub(super) async fn hash(&self, password: &Password) -> Result<String, PeopleError> {
        let text = password.0.clone();
        self.run(move || hash(&text)).await
    }

    /// Whether a password has this hash. Without a hash it takes as long and is false, so that the time does not show
    /// whether there is such a person.
    pub(super) async fn verify(
        &self,
        password: String,
        hash: Option<String>,
    ) -> Result<bool, PeopleError> {
        let is_known = hash.is_some();
        let is_equal = self
            .run(move || verify(&password, hash.as_deref().unwrap_or(&NO_ONES_HASH)))
            .await?;
        Ok(is_equal && is_known)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PeopleError> {
        let _place = self.waiting.try_acquire().map_err(|_| PeopleError::Busy)?;
        let running = Arc::clone(&self.running).acquire_owned().await;
        let running = running.expect("the semaphore is never closed");
        let work = tokio::task::spawn_blocking(move || {
            // Held by the thread, because a caller that goes away does not stop it.
            let _running = running;
            work()
        });
        Ok(work.await.expect("hashing does not panic"))
    }
}

/// The hash of a random password.
static NO_ONES_HASH: LazyLock<String> = LazyLock::new(|| {
    let mut bytes = [0; SALT_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    hash(&hex::encode(bytes))
});

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("the parameters are valid");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash(password: &str) -> String {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).expect("the operating system has randomness");
    let salt = SaltString::encode_b64(&salt).expect("the length of the salt is valid");
    let hash = argon2().hash_password(password.as_bytes(), &salt);
    hash.expect("a bounded password can be hashed").to_string()
}

/// Uses the parameters of the hash, so that older hashes stay valid when ours change.
fn verify(password: &str, hash: &str) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else {
        return false;
    };
    argon2().verify_password(password.as_bytes(), &hash).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_length_and_common_passwords_matter() {
        for (text, is_accepted) in [
            ("twelve chars", true),
            ("eleven char", false),
            ("ääääääääääää", true),
            ("PassWord1234", false),
            ("passwordpassword", false),
            (&*"x".repeat(256), true),
            (&*"x".repeat(257), false),
        ] {
            let password = Password::new(text.to_owned());
            assert_eq!(password.is_ok(), is_accepted, "{text}");
        }
    }

    #[test]
    fn common_passwords_are_sorted_out_in_lower_case() {
        assert!(COMMON.lines().count() > 90);
        for common in COMMON.lines() {
            assert_eq!(common, common.to_lowercase());
        }
    }

    #[tokio::test]
    async fn hash_is_argon2id_with_a_salt() {
        let hasher = Hasher::default();
        let password = Password::new("correct horse battery".to_owned()).expect("a password");
        let one = hasher.hash(&password).await.expect("a hash");
        let other = hasher.hash(&password).await.expect("a hash");
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert_ne!(one, other);
        let verify = async |text: &str, hash: Option<&str>| {
            let verified = hasher.verify(text.to_owned(), hash.map(str::to_owned));
            verified.await.expect("verified")
        };
        assert!(verify("correct horse battery", Some(&one)).await);
        assert!(!verify("correct horse batterz", Some(&one)).await);
        assert!(!verify("correct horse battery", None).await);
    }
}
