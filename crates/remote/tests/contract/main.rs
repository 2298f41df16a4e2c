//! Runs the contract suite through the AWS SDK on our own protocol and on third-party
//! implementations.

mod deviations;

use std::sync::Arc;

use homeport_store::contract::{Expectation, Fixture};
use homeport_store::{Store, SystemClock};
use homeport_test_backends::{Backend, Kind};

/// A separate store for every case, deleted with it.
struct Fresh {
    kind: Kind,
    backend: Backend,
}

impl Fixture for Fresh {
    fn store(&self) -> Arc<dyn Store> {
        self.backend.store()
    }

    fn expectation(&self, case: &str) -> Expectation {
        deviations::expectation(self.kind, case)
    }
}

async fn fresh(kind: Kind) -> Fresh {
    let backend = Backend::start(kind, Arc::new(SystemClock)).await;
    Fresh { kind, backend }
}

mod wire {
    async fn wire() -> super::Fresh {
        super::fresh(super::Kind::Wire).await
    }

    homeport_store::contract_tests!(wire);
}

mod dynoxide {
    async fn dynoxide() -> super::Fresh {
        super::fresh(super::Kind::Dynoxide).await
    }

    homeport_store::contract_tests!(dynoxide);
}

mod moto {
    async fn moto() -> super::Fresh {
        super::fresh(super::Kind::Moto).await
    }

    homeport_store::contract_tests!(moto);
}
