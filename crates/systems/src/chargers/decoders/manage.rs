//! Creating, changing, deleting and reading stored decoders.

use std::sync::Arc;

use homeport_item::Item;
use homeport_item::expression::KeyCondition;
use homeport_store::Query;

use super::decode::Decoder;
use super::document::DecoderDocument;
use super::load::LoadedDecoders;
use super::name::DecoderName;
use super::registry::Selector;
use super::{DECODER_BYTES_MAX, DECODERS_MAX, DecodersError, InvalidDecoder};
use crate::chargers::{Chargers, PAGE_MAX, schema};
use crate::cursor::Cursor;
use crate::documents::schema::PK;
use crate::documents::{Change, ChangeError, Document, VERSIONS_KEPT};
use crate::pages::{self, Page};
use crate::time::EpochMillis;

const LIST: &str = "chargers/decoders";

/// A decoder, or one of its versions.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDecoder {
    pub name: DecoderName,
    pub document: DecoderDocument,
    pub version: i64,
    pub created_at: EpochMillis,
    pub updated_at: EpochMillis,
    /// Whether this is the version that deleted the decoder.
    pub is_deletion: bool,
}

/// Manages the decoders of a store.
#[derive(Clone)]
pub struct Decoders(Arc<LoadedDecoders>);

impl Chargers {
    #[must_use]
    pub fn decoders(&self) -> Decoders {
        Decoders(Arc::clone(&self.decoders))
    }
}

impl Decoders {
    /// Checks a decoder without storing it.
    ///
    /// # Errors
    /// When it is invalid.
    pub fn check(document: &DecoderDocument) -> Result<Decoder, InvalidDecoder> {
        Selector::new(document)?;
        Decoder::new(document)
    }

    /// Creates or replaces a decoder; returns whether it is new.
    ///
    /// # Errors
    /// When it is invalid, `expected` is not the stored version, or the store fails.
    pub async fn put(
        &self,
        name: &DecoderName,
        document: DecoderDocument,
        expected: Option<i64>,
    ) -> Result<(StoredDecoder, bool), DecodersError> {
        Self::check(&document)?;
        let json = to_json(&document)?;
        let now = EpochMillis(self.0.clock.now_ms());
        let (before, version, created_at) = match self.get(name).await {
            Ok(current) => {
                check_version(&current, expected)?;
                (
                    Some(current.version),
                    current.version + 1,
                    current.created_at,
                )
            }
            Err(DecodersError::Missing(_)) if expected.is_none() => {
                if self.0.documents.all(DECODERS_MAX).await?.len() >= DECODERS_MAX {
                    return Err(DecodersError::TooMany);
                }
                let versions = self.0.documents.versions(name.as_str(), 1).await?;
                let last = versions.first().map(StoredDecoder::from_item).transpose()?;
                (None, last.map_or(0, |last| last.version) + 1, now)
            }
            Err(error) => return Err(error),
        };
        let stored = StoredDecoder {
            name: name.clone(),
            document,
            version,
            created_at,
            updated_at: now,
            is_deletion: false,
        };
        let written = stored.to_document(json);
        let change = match before {
            Some(before) => Change::Replace(&written, before),
            None => Change::Create(&written),
        };
        self.write(name, change).await?;
        Ok((stored, before.is_none()))
    }

    /// Deletes a decoder. Its versions stay readable.
    ///
    /// # Errors
    /// When it does not exist, `expected` is not the stored version, or the store fails.
    pub async fn delete(
        &self,
        name: &DecoderName,
        expected: Option<i64>,
    ) -> Result<(), DecodersError> {
        let current = self.get(name).await?;
        check_version(&current, expected)?;
        let read = current.version;
        let last = StoredDecoder {
            version: read + 1,
            updated_at: EpochMillis(self.0.clock.now_ms()),
            is_deletion: true,
            ..current
        };
        let last = last.to_document(to_json(&last.document)?);
        self.write(name, Change::Delete(&last, read)).await
    }

    /// # Errors
    /// When it does not exist or the store fails.
    pub async fn get(&self, name: &DecoderName) -> Result<StoredDecoder, DecodersError> {
        let item = self.0.documents.get(name.as_str()).await?;
        let item = item.ok_or_else(|| DecodersError::Missing(name.clone()))?;
        StoredDecoder::from_item(&item)
    }

    /// Lists the decoders by name.
    ///
    /// # Errors
    /// When the cursor is of another list or the store fails.
    pub async fn list(
        &self,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<StoredDecoder>, DecodersError> {
        let documents = &self.0.documents;
        let start = cursor.map(|cursor| cursor.start_of(LIST)).transpose()?;
        let condition = KeyCondition::new(PK, documents.current);
        let mut query = Query::new(documents.table, condition).starting_after(start);
        query.consistent = true;
        let table = schema::decoders();
        let limit = limit.clamp(1, PAGE_MAX);
        let page = pages::read_page(&*documents.store, &table, query, LIST, limit).await?;
        Ok(page.readable(&table, StoredDecoder::from_item))
    }

    /// Lists the stored versions of a decoder, newest first, also of a deleted one.
    ///
    /// # Errors
    /// When it never existed or the store fails.
    pub async fn versions(&self, name: &DecoderName) -> Result<Vec<StoredDecoder>, DecodersError> {
        let limit = usize::try_from(VERSIONS_KEPT).unwrap_or(usize::MAX);
        let items = self.0.documents.versions(name.as_str(), limit).await?;
        if items.is_empty() {
            return Err(DecodersError::Missing(name.clone()));
        }
        items.iter().map(StoredDecoder::from_item).collect()
    }

    /// # Errors
    /// When there is no such version or the store fails.
    pub async fn version(
        &self,
        name: &DecoderName,
        version: i64,
    ) -> Result<StoredDecoder, DecodersError> {
        let item = self.0.documents.version(name.as_str(), version).await?;
        let item = item.ok_or_else(|| DecodersError::VersionMissing(name.clone()))?;
        StoredDecoder::from_item(&item)
    }

    async fn write(&self, name: &DecoderName, change: Change<'_>) -> Result<(), DecodersError> {
        match self.0.documents.write(change).await {
            Ok(()) => {}
            Err(ChangeError::Overtaken) => {
                let actual = self.get(name).await?.version;
                return Err(DecodersError::Changed {
                    name: name.clone(),
                    actual,
                });
            }
            Err(ChangeError::Store(error)) => return Err(error.into()),
        }
        // The change itself is durable, and the next check loads it.
        if let Err(error) = self.0.reload().await {
            tracing::warn!(%error, "loading a changed decoder failed; its old version stays in use");
        }
        Ok(())
    }
}

impl StoredDecoder {
    fn to_document(&self, json: String) -> Document {
        Document {
            name: self.name.to_string(),
            json,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
            is_deletion: self.is_deletion,
        }
    }

    pub(super) fn from_item(item: &Item) -> Result<Self, DecodersError> {
        let malformed = |error: String| DecodersError::Malformed(error);
        let stored = Document::from_item(item).map_err(|error| malformed(error.to_string()))?;
        let name = stored.name.parse();
        let document = serde_json::from_str(&stored.json);
        Ok(Self {
            name: name.map_err(|_| malformed(format!("{:?} is no name", stored.name)))?,
            document: document.map_err(|error| malformed(format!("{}: {error}", stored.name)))?,
            version: stored.version,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
            is_deletion: stored.is_deletion,
        })
    }
}

impl std::fmt::Debug for Decoders {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Decoders").finish_non_exhaustive()
    }
}

fn to_json(document: &DecoderDocument) -> Result<String, DecodersError> {
    let json = serde_json::to_string(document);
    let json = json.map_err(|error| DecodersError::Malformed(error.to_string()))?;
    if json.len() > DECODER_BYTES_MAX {
        return Err(DecodersError::Invalid(InvalidDecoder {
            place: "decoder".to_owned(),
            reason: format!("at most {DECODER_BYTES_MAX} bytes as JSON"),
        }));
    }
    Ok(json)
}

fn check_version(current: &StoredDecoder, expected: Option<i64>) -> Result<(), DecodersError> {
    match expected {
        Some(expected) if expected != current.version => Err(DecodersError::Changed {
            name: current.name.clone(),
            actual: current.version,
        }),
        _ => Ok(()),
    }
}
