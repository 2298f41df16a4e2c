//! The second factor of a person: a shared secret for time-based codes, and recovery codes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};

use super::person::PersonName;
use super::{PeopleError, digest, random, totp};

/// Recovery codes that a person gets.
pub const RECOVERY_CODES: usize = 10;
const SECRET_BYTES: usize = 20;
const RECOVERY_CODE_BYTES: usize = 10;

/// The second factor as the table has it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SecondFactor {
    /// In base64. Codes are computed from it, so a digest is not enough.
    secret: String,
    /// Whether the person has shown a code of it. Until then, no code is required.
    pub(super) is_confirmed: bool,
    /// The step of the last used code. Earlier codes and this one are not accepted again.
    last_step: i64,
    /// Digests of the recovery codes that were not used.
    pub(super) recovery_digests: Vec<String>,
}

/// What an authenticator app needs; shown once.
#[derive(Clone)]
pub struct Enrolment {
    /// The secret in base32, to be typed.
    pub secret: String,
    /// The same as a URI, for a QR code or a link.
    pub uri: String,
}

/// Codes that replace the authenticator app, once each; shown once.
#[derive(Clone)]
pub struct RecoveryCodes(pub Vec<String>);

impl SecondFactor {
    pub(super) fn new(name: &PersonName) -> (Self, Enrolment) {
        let bytes: [u8; SECRET_BYTES] = random();
        let secret = totp::base32(&bytes);
        let name: String = name.as_str().replace('@', "%40").replace('+', "%2B");
        let enrolment = Enrolment {
            uri: format!("otpauth://totp/Homeport:{name}?secret={secret}&issuer=Homeport"),
            secret,
        };
        let factor = Self {
            secret: STANDARD_NO_PAD.encode(bytes),
            is_confirmed: false,
            last_step: 0,
            recovery_digests: Vec::new(),
        };
        (factor, enrolment)
    }

    /// Requires codes from now on, and makes recovery codes.
    pub(super) fn confirm(
        &mut self,
        code: &str,
        now_secs: i64,
    ) -> Result<RecoveryCodes, PeopleError> {
        self.use_code(code, now_secs)?;
        let codes: Vec<String> = (0..RECOVERY_CODES)
            .map(|_| totp::base32(&random::<RECOVERY_CODE_BYTES>()).to_lowercase())
            .collect();
        self.recovery_digests = codes.iter().map(|code| digest(code.as_bytes())).collect();
        self.is_confirmed = true;
        Ok(RecoveryCodes(codes))
    }

    /// Accepts a code of the app or a recovery code, once.
    pub(super) fn use_code(&mut self, sent: &str, now_secs: i64) -> Result<(), PeopleError> {
        let sent: String = sent.chars().filter(|char| !char.is_whitespace()).collect();
        let secret = STANDARD_NO_PAD.decode(&self.secret);
        let secret = secret.map_err(|_| PeopleError::Malformed("second_factor".to_owned()))?;
        if let Some(step) = totp::step_of(&secret, &sent, now_secs, self.last_step) {
            self.last_step = step;
            return Ok(());
        }
        let used = digest(sent.to_lowercase().as_bytes());
        let found = (self.recovery_digests.iter()).position(|digest| *digest == used);
        self.recovery_digests
            .remove(found.ok_or(PeopleError::WrongCode)?);
        Ok(())
    }
}

impl std::fmt::Debug for Enrolment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Enrolment(…)")
    }
}

impl std::fmt::Debug for RecoveryCodes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RecoveryCodes(…)")
    }
}
