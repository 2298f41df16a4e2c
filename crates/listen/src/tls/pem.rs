//! Reads certificates from PEM files.

use std::io;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};

/// Why certificates cannot be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum PemFileError {
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("{} is not a valid PEM file", .0.display())]
    Pem(PathBuf, #[source] pem::Error),
    #[error("{} contains no certificate", .0.display())]
    Empty(PathBuf),
}

/// All certificates of a PEM file, in their order.
///
/// # Errors
/// If the file cannot be read or contains no certificate.
pub fn certificates_of_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemFileError> {
    let bytes = read(path)?;
    certificates(path, &bytes)
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, PemFileError> {
    std::fs::read(path).map_err(|error| PemFileError::Read(path.to_owned(), error))
}

/// The certificates in `bytes`, which were read from `path`.
pub(super) fn certificates(
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, PemFileError> {
    let all = CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| PemFileError::Pem(path.to_owned(), error))?;
    if all.is_empty() {
        return Err(PemFileError::Empty(path.to_owned()));
    }
    Ok(all)
}
