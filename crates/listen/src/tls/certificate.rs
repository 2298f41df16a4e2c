//! A certificate with its private key, which is replaced while connections are accepted.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, InconsistentKeys};

use super::pem::{PemFileError, certificates, read};
use super::provider;
use super::validity::expires_at;

/// The PEM files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The server's certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The certificate that a server shows. Clones share it.
#[derive(Clone)]
pub struct Certificate(Arc<Shared>);

struct Shared {
    files: CertificateFiles,
    current: RwLock<Current>,
    /// A hash of the files as they were read last, usable or not.
    seen: Mutex<u64>,
}

#[derive(Clone)]
struct Current {
    key: Arc<CertifiedKey>,
    expires_at: i64,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error(transparent)]
    File(#[from] PemFileError),
    #[error("{} contains no private key that can be read", .0.display())]
    KeyFile(PathBuf, #[source] pem::Error),
    #[error("the private key in {} cannot be used", .0.display())]
    Key(PathBuf, #[source] rustls::Error),
    #[error("the first certificate in {} is invalid", .0.display())]
    Invalid(PathBuf),
    #[error("the private key in {} does not belong to the first certificate in {}", .0.key.display(), .0.certificate.display())]
    OtherKey(CertificateFiles),
}

impl Certificate {
    /// Reads a certificate.
    ///
    /// # Errors
    /// If the files cannot be read, or do not belong together.
    pub fn load(files: CertificateFiles) -> Result<Self, CertificateError> {
        let (seen, current) = load(&files);
        Ok(Self(Arc::new(Shared {
            current: RwLock::new(current?),
            seen: Mutex::new(seen),
            files,
        })))
    }

    /// Uses the certificate in the files for new connections if they have changed. Returns whether it did.
    ///
    /// # Errors
    /// If the files have changed and are unusable. The certificate stays as it was. The same content is not reported again.
    pub fn reload(&self) -> Result<bool, CertificateError> {
        let (now, current) = load(&self.0.files);
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *seen, now) == now {
            return Ok(false);
        }
        let current = current?;
        *self
            .0
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner) = current;
        Ok(true)
    }

    #[must_use]
    pub fn files(&self) -> &CertificateFiles {
        &self.0.files
    }

    /// The time at which the certificate expires, in seconds since the epoch.
    #[must_use]
    pub fn expires_at(&self) -> i64 {
        self.current().expires_at
    }

    /// The server's certificate in DER, without the intermediate ones.
    #[must_use]
    pub fn der(&self) -> CertificateDer<'static> {
        // A chain is not empty: `certificates` makes sure of that.
        self.current().key.cert[0].clone()
    }

    fn current(&self) -> Current {
        let current = self.0.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A hash of the files, and the certificate in them.
fn load(files: &CertificateFiles) -> (u64, Result<Current, CertificateError>) {
    let mut hasher = DefaultHasher::new();
    let mut read = |path| {
        let bytes = read(path);
        match &bytes {
            Ok(bytes) => bytes.hash(&mut hasher),
            Err(error) => error.to_string().hash(&mut hasher),
        }
        bytes
    };
    let (chain, key) = (read(&files.certificate), read(&files.key));
    let current = chain.and_then(|chain| Ok((chain, key?)));
    let current = current.map_err(CertificateError::from);
    let current = current.and_then(|(chain, key)| parse(files, &chain, &key));
    (hasher.finish(), current)
}

fn parse(files: &CertificateFiles, chain: &[u8], key: &[u8]) -> Result<Current, CertificateError> {
    let chain = certificates(&files.certificate, chain)?;
    let invalid = || CertificateError::Invalid(files.certificate.clone());
    let expires_at = expires_at(&chain[0]).ok_or_else(invalid)?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| CertificateError::KeyFile(files.key.clone(), error))?;
    let key = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            CertificateError::OtherKey(files.clone())
        }
        rustls::Error::InvalidCertificate(_) => invalid(),
        error => CertificateError::Key(files.key.clone(), error),
    })?;
    Ok(Current {
        key: Arc::new(key),
        expires_at,
    })
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current().key)
    }
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Certificate")
            .field("files", &self.0.files)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    /// A certificate that expires in a year, and its key.
    fn pair(year: i32) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.not_after = date_time_ymd(year, 1, 1);
        let certificate = params.self_signed(&key).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    fn files(directory: &Path) -> CertificateFiles {
        CertificateFiles {
            certificate: directory.join("cert.pem"),
            key: directory.join("key.pem"),
        }
    }

    fn write(files: &CertificateFiles, (certificate, key): &(String, String)) {
        fs::write(&files.certificate, certificate).expect("written");
        fs::write(&files.key, key).expect("written");
    }

    #[test]
    fn unusable_files_keep_the_certificate() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = files(directory.path());
        let (first, second) = (pair(2050), pair(2060));
        write(&files, &first);
        let certificate = Certificate::load(files.clone()).expect("a certificate");
        let expires_at = certificate.expires_at();
        assert!(!certificate.reload().expect("the same"));
        let half = &second.0[..second.0.len() / 2];
        for (content, key, reason) in [
            (second.0.as_str(), first.1.as_str(), "does not belong"),
            (half, &second.1, "cert.pem"),
            ("", &second.1, "contains no certificate"),
            (&second.0, "", "no private key"),
            (
                &second.0,
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                "cannot be used",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                &second.1,
                "is invalid",
            ),
        ] {
            write(&files, &(content.to_owned(), key.to_owned()));
            let error = certificate.reload().expect_err(reason).to_string();
            assert!(error.contains(reason), "{reason}: {error}");
            assert!(!certificate.reload().expect("reported once"), "{reason}");
            assert_eq!(certificate.expires_at(), expires_at);
        }
        fs::remove_file(&files.key).expect("removed");
        let error = certificate.reload().expect_err("missing").to_string();
        assert!(error.starts_with("cannot read"), "{error}");
        write(&files, &second);
        assert!(certificate.reload().expect("a certificate"));
        assert!(certificate.expires_at() > expires_at);
    }
}
