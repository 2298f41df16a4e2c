//! What every contestant can do. Requests are built before the clock runs; waiting for an answer
//! costs all of them a oneshot channel.

use crate::workload::Reading;

/// A store under test. Clones share it.
pub(crate) trait Contestant: Clone + Send + Sync + 'static {
    /// One transaction, ready to be handed over: marker, reading, device.
    type Request: Send + 'static;

    fn request(&self, reading: Reading) -> Self::Request;

    /// Registers every device.
    fn register(&self) -> impl Future<Output = ()> + Send;

    /// Writes transactions handed over at once; returns when all are durable.
    fn write(&self, requests: Vec<Self::Request>) -> impl Future<Output = ()> + Send;

    /// Reads one reading; whether it was found.
    fn get(
        &self,
        caller: usize,
        reading: Reading,
        decoded: bool,
    ) -> impl Future<Output = bool> + Send;

    /// Reads a device's newest readings; how many there were.
    fn newest(
        &self,
        caller: usize,
        device: u32,
        count: usize,
        decoded: bool,
    ) -> impl Future<Output = usize> + Send;

    /// Reads `count` readings in order from `first` on, in pages; how many there were.
    fn range(
        &self,
        caller: usize,
        first: Reading,
        count: usize,
        decoded: bool,
    ) -> impl Future<Output = usize> + Send;
}
