//! Calls every operation of our protocol through the typed AWS SDK for Rust. The SDK parses
//! responses strictly, so a response that it cannot read or reads differently is wrong.

mod items;
mod past;
mod sdk;
mod statements;
mod streams;
mod tables;

use std::collections::BTreeSet;

use sdk::Sdk;

#[tokio::test]
async fn sdk_reads_every_operation() {
    let sdk = Sdk::start().await;
    tables::check(&sdk).await;
    items::check(&sdk).await;
    items::check_failures(&sdk).await;
    statements::check(&sdk).await;
    streams::check(&sdk).await;
    past::check_backups(&sdk).await;
    past::check_recovery(&sdk).await;
    past::check_transfers(&sdk).await;
    let served: BTreeSet<String> = homeport_wire::OPERATIONS
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(served.len() > 40, "{served:?}");
    assert_eq!(sdk.called(), served, "called and served");
}
