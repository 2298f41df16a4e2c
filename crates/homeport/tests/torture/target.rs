//! The server's current addresses, which change with every start.

use std::net::SocketAddr;

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) http: SocketAddr,
    pub(crate) dynamodb: SocketAddr,
    pub(crate) mqtt: SocketAddr,
}

/// The harness's end.
#[derive(Debug, Clone)]
pub(crate) struct Announcer(watch::Sender<Option<Addresses>>);

/// The clients' end.
#[derive(Debug, Clone)]
pub(crate) struct Target(watch::Receiver<Option<Addresses>>);

impl Announcer {
    pub(crate) fn new(addresses: Option<Addresses>) -> (Self, Target) {
        let (sender, receiver) = watch::channel(addresses);
        (Self(sender), Target(receiver))
    }

    pub(crate) fn set(&self, addresses: Option<Addresses>) {
        self.0.send_replace(addresses);
    }
}

impl Target {
    pub(crate) fn now(&self) -> Option<Addresses> {
        *self.0.borrow()
    }
}
