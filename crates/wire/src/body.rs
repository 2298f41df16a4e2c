//! Reads the body of a request within limits of size, time and memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest body.
pub(crate) const BODY_MAX_BYTES: usize = 16 * 1024 * 1024;
/// The memory of all bodies that are being read or handled.
const BODIES_MAX_BYTES: usize = 256 * 1024 * 1024;
/// Bodies up to this size are not counted.
const SMALL_BODY_BYTES: usize = 64 * 1024;
const UNIT_BYTES: usize = 1024;

/// The memory budget of all bodies.
#[derive(Debug, Clone)]
pub(crate) struct BodyRoom(Arc<Semaphore>);

/// A body with its share of the memory budget. Clones share both.
#[derive(Debug, Clone)]
pub(crate) struct RequestBody {
    pub(crate) bytes: Bytes,
    _room: Option<Arc<OwnedSemaphorePermit>>,
}

impl RequestBody {
    pub(crate) fn new(bytes: Bytes, room: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            bytes,
            _room: room.map(Arc::new),
        }
    }
}

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLarge,
    TooSlow,
    /// The client disconnected or violated the protocol.
    Broken,
}

impl BodyRoom {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(BODIES_MAX_BYTES / UNIT_BYTES)))
    }

    /// Whether this body counts in the memory budget.
    pub(crate) fn is_counted(body: &Incoming, is_compressed: bool) -> bool {
        most_bytes(body, is_compressed) > SMALL_BODY_BYTES
    }

    /// Reads the whole body. A compressed body also reserves memory for its decoded form.
    pub(crate) async fn read(
        &self,
        body: Incoming,
        is_compressed: bool,
        timeout: Duration,
    ) -> Result<RequestBody, BodyError> {
        tokio::time::timeout(timeout, self.read_untimed(body, is_compressed))
            .await
            .map_err(|_| BodyError::TooSlow)?
    }

    async fn read_untimed(
        &self,
        mut body: Incoming,
        is_compressed: bool,
    ) -> Result<RequestBody, BodyError> {
        let announced = announced_bytes(&body);
        if announced > BODY_MAX_BYTES {
            return Err(BodyError::TooLarge);
        }
        let most = most_bytes(&body, is_compressed);
        let room = if most <= SMALL_BODY_BYTES {
            None
        } else {
            let units = u32::try_from(most.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
            let acquired = Arc::clone(&self.0).acquire_many_owned(units).await;
            Some(acquired.map_err(|_| BodyError::Broken)?)
        };
        let mut first: Option<Bytes> = None;
        let mut rest: Option<BytesMut> = None;
        let mut len = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| BodyError::Broken)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            len += data.len();
            if len > BODY_MAX_BYTES {
                return Err(BodyError::TooLarge);
            }
            // Most bodies arrive in one piece, which is not copied.
            match (&mut first, &mut rest) {
                (None, None) => first = Some(data),
                (Some(start), None) => {
                    let mut joined = BytesMut::with_capacity(announced.max(len));
                    joined.extend_from_slice(start);
                    joined.extend_from_slice(&data);
                    rest = Some(joined);
                }
                (_, Some(joined)) => joined.extend_from_slice(&data),
            }
        }
        let bytes = match rest {
            Some(joined) => joined.freeze(),
            None => first.unwrap_or_default(),
        };
        Ok(RequestBody::new(bytes, room))
    }
}

/// The announced length, or zero.
fn announced_bytes(body: &Incoming) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

/// The largest memory that a body and its decoded form may need.
fn most_bytes(body: &Incoming, is_compressed: bool) -> usize {
    // A body without an announced length may have the maximum length.
    let most = match body.size_hint().exact() {
        Some(_) => announced_bytes(body),
        None => BODY_MAX_BYTES,
    };
    match is_compressed {
        true => most.saturating_add(BODY_MAX_BYTES),
        false => most,
    }
}
