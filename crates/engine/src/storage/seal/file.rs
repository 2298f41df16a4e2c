//! Sealed files: a readable head, then pieces of 64 KiB, each sealed.
//!
//! ```text
//! file  := "homeport sealed file\n" 01 store(16) fingerprint(8) key-id(4)
//!          created_at_ms(8) nonce(12) wrapped-key(48) salt(16) piece*
//! piece := ciphertext tag(16)
//! ```
//! The head contains the data key, wrapped by the master key of the time of writing, so that a file can be
//! opened without the store that wrote it. The file's own key is derived from the data key and the salt. The
//! nonce of a piece is its number, with a flag for the last one, so pieces cannot be removed, moved or cut
//! off unnoticed.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, Write};
use std::path::Path;

use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};

use crate::storage::permissions;
use crate::storage::seal::error::SealError;
use crate::storage::seal::keyring::{
    self, DataKey, StoreId, WRAPPED_BYTES, Wrapped, must_be, take,
};
use crate::storage::seal::master::{Fingerprint, MasterKey, derive};
use crate::storage::seal::sealer::Sealer;

const MAGIC: &[u8] = b"homeport sealed file\n\x01";
const LABEL: &[u8] = b"homeport data key 1: file";
pub(crate) const SALT_BYTES: usize = 16;
const HEAD_BYTES: usize =
    MAGIC.len() + keyring::STORE_ID_BYTES + 8 + 4 + 8 + NONCE_LEN + WRAPPED_BYTES + SALT_BYTES;
const PIECE_BYTES: usize = 64 * 1024;
const TAG_BYTES: usize = 16;

/// The contents of a file before its pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHead {
    pub(crate) store: StoreId,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) id: u32,
    pub(crate) wrapped: Wrapped,
    pub(crate) salt: [u8; SALT_BYTES],
}

impl FileHead {
    /// The file's cipher, from the data key that the head refers to.
    pub(crate) fn cipher(&self, key: &DataKey) -> LessSafeKey {
        derive(key, &self.salt, LABEL)
    }

    /// The file's cipher, from the wrapped data key in the head.
    pub(crate) fn open(&self, path: &Path, master: &MasterKey) -> Result<LessSafeKey, SealError> {
        must_be(path, self.fingerprint, master)?;
        let key = keyring::unwrap(master, &self.store, self.id, &self.wrapped);
        let key = key.ok_or_else(|| SealError::Damaged {
            path: path.to_owned(),
            reason: "the key in its head cannot be decrypted",
        })?;
        Ok(self.cipher(&key))
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.store);
        bytes.extend_from_slice(&self.fingerprint.0);
        bytes.extend_from_slice(&self.id.to_be_bytes());
        bytes.extend_from_slice(&self.wrapped.created_at_ms.to_be_bytes());
        bytes.extend_from_slice(&self.wrapped.nonce);
        bytes.extend_from_slice(&self.wrapped.key);
        bytes.extend_from_slice(&self.salt);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        Some(Self {
            store: take(&mut rest)?,
            fingerprint: Fingerprint(take(&mut rest)?),
            id: u32::from_be_bytes(take(&mut rest)?),
            wrapped: Wrapped {
                created_at_ms: i64::from_be_bytes(take(&mut rest)?),
                nonce: take(&mut rest)?,
                key: take(&mut rest)?,
            },
            salt: take(&mut rest)?,
        })
    }
}

/// Keys for opening files that may be sealed.
#[derive(Clone, Copy)]
pub(crate) enum FileKeys<'a> {
    /// The keys of an open store; `None` if it is not sealed.
    Store(Option<&'a Sealer>),
    /// Only a master key, if one is given.
    Master(Option<&'a MasterKey>),
}

impl FileKeys<'_> {
    fn cipher(&self, path: &Path, head: &FileHead) -> Result<LessSafeKey, SealError> {
        match self {
            Self::Store(Some(sealer)) => sealer.file_cipher(path, head),
            Self::Master(Some(master)) => head.open(path, master),
            Self::Store(None) | Self::Master(None) => Err(SealError::KeyMissing {
                path: path.to_owned(),
                wanted: head.fingerprint,
            }),
        }
    }
}

/// Opens a file for reading, sealed or not.
pub(crate) fn open(path: &Path, keys: FileKeys<'_>) -> Result<Box<dyn Read + Send>, SealError> {
    let io = |source| SealError::Io {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(io)?;
    let len = file.metadata().map_err(io)?.len();
    let mut start = Vec::with_capacity(HEAD_BYTES);
    let mut head = (&mut file).take(HEAD_BYTES as u64);
    head.read_to_end(&mut start).map_err(io)?;
    if let Some([version, ..]) = start.strip_prefix(&MAGIC[..MAGIC.len() - 1])
        && *version > MAGIC[MAGIC.len() - 1]
    {
        return Err(SealError::NewerFormat(path.to_owned()));
    }
    if !start.starts_with(MAGIC) {
        file.rewind().map_err(io)?;
        return Ok(Box::new(BufReader::new(file)));
    }
    let head = FileHead::decode(&start).ok_or_else(|| SealError::Damaged {
        path: path.to_owned(),
        reason: "its head is invalid",
    })?;
    let cipher = keys.cipher(path, &head)?;
    Ok(Box::new(SealedReader {
        file: BufReader::new(file),
        cipher,
        head: head.encode(),
        left: len - HEAD_BYTES as u64,
        piece: Vec::new(),
        at: 0,
        number: 0,
        has_ended: false,
    }))
}

/// Creates a file for writing: sealed if the store is.
pub(crate) fn create(path: &Path, sealer: Option<&Sealer>) -> Result<FileWriter, SealError> {
    let io = |source| SealError::Io {
        path: path.to_owned(),
        source,
    };
    let sealing = sealer.map(Sealer::begin_file).transpose()?;
    let mut file = permissions::create_file(path).map_err(io)?;
    let sealing = match sealing {
        None => None,
        Some((head, cipher)) => {
            let head = head.encode();
            file.write_all(&head).map_err(io)?;
            Some((head, cipher))
        }
    };
    Ok(FileWriter {
        file,
        sealing,
        piece: Vec::with_capacity(PIECE_BYTES + TAG_BYTES),
        number: 0,
    })
}

/// Writes a file in pieces, sealing each if the store is sealed.
pub(crate) struct FileWriter {
    file: File,
    sealing: Option<(Vec<u8>, LessSafeKey)>,
    piece: Vec<u8>,
    number: u64,
}

impl FileWriter {
    /// Writes the last piece and syncs the file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.write_piece(true)?;
        self.file.sync_all()
    }

    fn write_piece(&mut self, is_last: bool) -> io::Result<()> {
        if let Some((head, cipher)) = &self.sealing {
            let nonce = nonce(self.number, is_last);
            cipher
                .seal_in_place_append_tag(nonce, Aad::from(head), &mut self.piece)
                .map_err(|_| io::Error::other("a piece of a file cannot be sealed"))?;
        }
        self.number += 1;
        self.file.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full piece is kept until more follows, because it may be the last.
        if self.piece.len() == PIECE_BYTES {
            self.write_piece(false)?;
        }
        let taken = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Full pieces are written immediately, the last one by [`FileWriter::finish`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct SealedReader {
    file: BufReader<File>,
    cipher: LessSafeKey,
    head: Vec<u8>,
    /// Bytes of the file that are not read yet.
    left: u64,
    piece: Vec<u8>,
    at: usize,
    number: u64,
    has_ended: bool,
}

impl SealedReader {
    fn next_piece(&mut self) -> io::Result<()> {
        let whole = (PIECE_BYTES + TAG_BYTES) as u64;
        let is_last = self.left <= whole;
        let len = self.left.min(whole) as usize;
        self.piece.resize(len, 0);
        self.file.read_exact(&mut self.piece)?;
        self.left -= len as u64;
        let opened = self
            .cipher
            .open_in_place(
                nonce(self.number, is_last),
                Aad::from(&self.head),
                &mut self.piece,
            )
            .map_err(|_| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a piece of the file cannot be decrypted: it was modified or cut off",
                )
            })?
            .len();
        self.piece.truncate(opened);
        self.at = 0;
        self.number += 1;
        self.has_ended = is_last;
        Ok(())
    }
}

impl Read for SealedReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            if self.has_ended {
                return Ok(0);
            }
            self.next_piece()?;
        }
        let taken = out.len().min(self.piece.len() - self.at);
        out[..taken].copy_from_slice(&self.piece[self.at..self.at + taken]);
        self.at += taken;
        Ok(taken)
    }
}

fn nonce(number: u64, is_last: bool) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[0] = u8::from(is_last);
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use homeport_store::SystemClock;

    use super::*;
    use crate::storage::seal::keyring::Keyring;

    fn master(digit: &str) -> MasterKey {
        MasterKey::parse(&format!("{}0", digit.repeat(63))).unwrap()
    }

    fn sealer(directory: &Path, master: &MasterKey) -> Sealer {
        let keyring = match Keyring::open(directory, master).unwrap() {
            Some(keyring) => keyring,
            None => Keyring::new(master).unwrap(),
        };
        Sealer::new(directory, keyring, master.clone(), Arc::new(SystemClock))
    }

    fn write(path: &Path, sealer: Option<&Sealer>, bytes: &[u8]) {
        let mut writer = create(path, sealer).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap();
    }

    fn read(path: &Path, keys: FileKeys<'_>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut reader = open(path, keys).map_err(io::Error::other)?;
        reader.read_to_end(&mut bytes).map(|_| bytes)
    }

    #[test]
    fn files_of_any_length_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let sealer = sealer(directory.path(), &master("a"));
        for len in [
            0,
            1,
            PIECE_BYTES - 1,
            PIECE_BYTES,
            PIECE_BYTES + 1,
            3 * PIECE_BYTES,
        ] {
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            write(&path, Some(&sealer), &bytes);
            let keys = FileKeys::Store(Some(&sealer));
            assert_eq!(read(&path, keys).unwrap(), bytes, "{len} bytes");
            let alone = master("a");
            assert_eq!(read(&path, FileKeys::Master(Some(&alone))).unwrap(), bytes);
            write(&path, None, &bytes);
            assert_eq!(read(&path, FileKeys::Master(None)).unwrap(), bytes);
        }
    }

    #[test]
    fn cut_head_of_a_sealed_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let sealer = sealer(directory.path(), &master("a"));
        write(&path, Some(&sealer), b"secret");
        let whole = std::fs::read(&path).unwrap();
        for len in MAGIC.len()..HEAD_BYTES {
            std::fs::write(&path, &whole[..len]).unwrap();
            read(&path, FileKeys::Store(Some(&sealer))).unwrap_err();
        }
    }

    #[test]
    fn every_change_of_a_sealed_file_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let sealer = sealer(directory.path(), &master("a"));
        let bytes: Vec<u8> = (0..3 * PIECE_BYTES).map(|at| (at % 251) as u8).collect();
        write(&path, Some(&sealer), &bytes);
        let sealed = std::fs::read(&path).unwrap();
        let whole = PIECE_BYTES + TAG_BYTES;
        let piece = |at: usize| &sealed[HEAD_BYTES + at * whole..][..whole];
        let head = &sealed[..HEAD_BYTES];
        let changed: [(&str, Vec<u8>); 5] = [
            (
                "last piece cut off",
                sealed[..HEAD_BYTES + 2 * whole].to_vec(),
            ),
            (
                "cut in the middle",
                sealed[..HEAD_BYTES + whole + 77].to_vec(),
            ),
            ("nothing but the head", head.to_vec()),
            (
                "pieces moved",
                [head, piece(1), piece(0), piece(2)].concat(),
            ),
            ("a piece left out", [head, piece(0), piece(2)].concat()),
        ];
        let keys = FileKeys::Store(Some(&sealer));
        for (what, bytes) in changed {
            std::fs::write(&path, bytes).unwrap();
            assert!(read(&path, keys).is_err(), "{what}");
        }
        for at in (MAGIC.len()..HEAD_BYTES).chain([HEAD_BYTES, sealed.len() - 1]) {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            std::fs::write(&path, flipped).unwrap();
            assert!(read(&path, keys).is_err(), "byte {at}");
        }
    }

    #[test]
    fn file_opens_after_a_master_key_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        write(
            &path,
            Some(&sealer(directory.path(), &master("a"))),
            b"words",
        );
        let keyring = Keyring::open(directory.path(), &master("a"))
            .unwrap()
            .unwrap();
        keyring
            .rewrapped(directory.path(), &master("a"), &master("b"))
            .and_then(|keyring| keyring.write(directory.path(), &master("b")))
            .unwrap();
        let store = sealer(directory.path(), &master("b"));
        assert_eq!(
            read(&path, FileKeys::Store(Some(&store))).unwrap(),
            b"words"
        );
        // Without the store, only the key from the time of writing works.
        let (old, new) = (master("a"), master("b"));
        assert_eq!(read(&path, FileKeys::Master(Some(&old))).unwrap(), b"words");
        let error = open(&path, FileKeys::Master(Some(&new))).err().unwrap();
        assert!(matches!(error, SealError::OtherKey { .. }), "{error}");
        let error = open(&path, FileKeys::Master(None)).err().unwrap();
        assert!(matches!(error, SealError::KeyMissing { .. }), "{error}");
    }
}
