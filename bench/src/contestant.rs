//! The operations of every contestant. Requests are built before the measurement; waiting for a response costs each contestant
//! a oneshot channel.

use crate::workload::Reading;

/// A store under test. Clones share it.
pub(crate) trait Contestant: Clone + Send + Sync + 'static {
    /// One prepared transaction: marker, reading, device.
    type Request: Send + 'static;

    fn request(&self, reading: Reading) -> Self::Request;

    /// Registers every device.
    fn register(&self) -> impl Future<Output = ()> + Send;

    /// Writes transactions that are submitted together. Returns when all are durable.
    fn write(&self, requests: Vec<Self::Request>) -> impl Future<Output = ()> + Send;

    /// Reads one reading. Returns whether it exists.
    fn get(
        &self,
        caller: usize,
        reading: Reading,
        decoded: bool,
    ) -> impl Future<Output = bool> + Send;

    /// Reads a device's newest readings. Returns their number.
    fn newest(
        &self,
        caller: usize,
        device: u32,
        count: usize,
        decoded: bool,
    ) -> impl Future<Output = usize> + Send;

    /// Reads `count` readings in order from `first` on, in pages. Returns their number.
    fn range(
        &self,
        caller: usize,
        first: Reading,
        count: usize,
        decoded: bool,
    ) -> impl Future<Output = usize> + Send;
}
