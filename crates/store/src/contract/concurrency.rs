//! Concurrent callers: no write is lost, and at most one of several callers that claim an item
//! succeeds.

use std::sync::Arc;

use homeport_item::Value;
use homeport_item::expression::{Condition, Update as Changes};
use tokio::task::JoinSet;

use super::case::{Case, item};
use super::outcome::Outcome;
use crate::{CancelReason, Get, Put, TransactError, Transaction, Update};

/// The number of concurrent callers in each case.
const CALLERS: usize = 16;
/// Maximum number of attempts for a transaction that conflicts with others.
const ATTEMPTS_MAX: usize = 200;

pub async fn concurrent_increments_all_count(case: &Case) {
    let table = case.keyed().await;
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let store = Arc::clone(&case.store);
        let update = Update::new(&table, item("a"), add_one());
        callers.spawn(async move { store.update(update).await });
    }
    for answer in callers.join_all().await {
        assert_eq!(answer, Ok(None));
    }
    let count = i64::try_from(CALLERS).expect("a small number");
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", count))
    );
}

pub async fn one_concurrent_conditional_put_wins(case: &Case) {
    let table = case.keyed().await;
    let mut callers = JoinSet::new();
    for n in 0..CALLERS {
        let store = Arc::clone(&case.store);
        let put =
            Put::new(&table, item("a").with("by", n.to_string())).when(Condition::not_exists("pk"));
        callers.spawn(async move { (n, Outcome::of(store.put(put).await)) });
    }
    let (winners, losers): (Vec<_>, Vec<_>) = callers
        .join_all()
        .await
        .into_iter()
        .partition(|(_, outcome)| *outcome == Outcome::Success);
    let [(winner, _)] = winners[..] else {
        panic!("{} puts won", winners.len());
    };
    for (_, outcome) in losers {
        assert_eq!(outcome, Outcome::ConditionFailed);
    }
    let found = case.get(&table, item("a")).await;
    assert_eq!(found, Some(item("a").with("by", winner.to_string())));
}

pub async fn conflicting_submitted_transactions_have_at_most_one_winner(case: &Case) {
    let table = case.keyed().await;
    let claim = |n: usize| {
        let put =
            Put::new(&table, item("a").with("by", n.to_string())).when(Condition::not_exists("pk"));
        let other_item = Put::new(&table, item(&format!("other-{n}")));
        Transaction::new(vec![put.into(), other_item.into()])
    };
    let outcomes = case
        .store
        .transact_each((0..CALLERS).map(claim).collect())
        .await;
    let outcomes: Vec<_> = outcomes.into_iter().map(Outcome::of).collect();
    let winners = outcomes
        .iter()
        .filter(|outcome| **outcome == Outcome::Success);
    assert!(winners.count() <= 1, "{outcomes:?}");
    let owner = case.get(&table, item("a")).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        let won = *outcome == Outcome::Success;
        assert!(won || *outcome == Outcome::Cancelled, "{outcome:?}");
        let other_item = case.get(&table, item(&format!("other-{n}"))).await;
        assert_eq!(other_item.is_some(), won, "transaction {n}");
        if won {
            assert_eq!(owner, Some(item("a").with("by", n.to_string())));
        }
    }
}

pub async fn transact_get_never_sees_partial_transactions(case: &Case) {
    let table = case.keyed().await;
    let store = Arc::clone(&case.store);
    let both = Transaction::new(vec![
        Update::new(&table, item("a"), add_one()).into(),
        Update::new(&table, item("b"), add_one()).into(),
    ]);
    let writer = tokio::spawn(async move {
        for _ in 0..CALLERS {
            write_with_retries(store.as_ref(), &both).await;
            tokio::task::yield_now().await;
        }
    });
    while !writer.is_finished() {
        let gets = ["a", "b"].map(|pk| Get::new(&table, item(pk)));
        match case.store.transact_get(gets.to_vec()).await {
            Ok(found) => {
                let [a, b] = &found[..] else {
                    panic!("the request was for two items: {found:?}");
                };
                let n = |item: &Option<homeport_item::Item>| -> Option<Value> {
                    item.as_ref()?.get("n").cloned()
                };
                assert_eq!(n(a), n(b));
            }
            Err(error) => assert!(is_conflict(&error), "{error:?}"),
        }
        tokio::task::yield_now().await;
    }
    writer.await.expect("the writer ends well");
}

async fn write_with_retries(store: &dyn crate::Store, transaction: &Transaction) {
    for _ in 0..ATTEMPTS_MAX {
        match store.transact(transaction.clone()).await {
            Ok(()) => return,
            Err(error) => assert!(is_conflict(&error), "{error:?}"),
        }
    }
    panic!("every attempt conflicted");
}

fn is_conflict(error: &TransactError) -> bool {
    matches!(error, TransactError::Cancelled(reasons)
        if reasons.contains(&CancelReason::Conflict))
}

fn add_one() -> Changes {
    Changes::new().add("n", 1)
}
