//! Callers at the same time: nothing is lost, and of those who claim one item at most one wins.

use std::sync::Arc;

use homeport_item::Value;
use homeport_item::expression::{Condition, Update as Changes};
use tokio::task::JoinSet;

use super::case::{Case, item};
use super::outcome::Outcome;
use crate::{CancelReason, Get, Put, TransactError, Transaction, Update};

/// Callers at the same time in each case.
const CALLERS: usize = 16;
/// How often a transaction is repeated that others got in the way of.
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

pub async fn of_concurrent_conditional_puts_one_wins(case: &Case) {
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
        .partition(|(_, outcome)| *outcome == Outcome::Done);
    let [(winner, _)] = winners[..] else {
        panic!("{} puts won", winners.len());
    };
    for (_, outcome) in losers {
        assert_eq!(outcome, Outcome::ConditionFailed);
    }
    let found = case.get(&table, item("a")).await;
    assert_eq!(found, Some(item("a").with("by", winner.to_string())));
}

pub async fn of_transactions_handed_over_together_one_at_most_gets_the_item(case: &Case) {
    let table = case.keyed().await;
    let claim = |n: usize| {
        let put =
            Put::new(&table, item("a").with("by", n.to_string())).when(Condition::not_exists("pk"));
        let beside = Put::new(&table, item(&format!("beside-{n}")));
        Transaction::new(vec![put.into(), beside.into()])
    };
    let outcomes = case
        .store
        .transact_each((0..CALLERS).map(claim).collect())
        .await;
    let outcomes: Vec<_> = outcomes.into_iter().map(Outcome::of).collect();
    let winners = outcomes.iter().filter(|outcome| **outcome == Outcome::Done);
    assert!(winners.count() <= 1, "{outcomes:?}");
    let owner = case.get(&table, item("a")).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        let won = *outcome == Outcome::Done;
        assert!(won || *outcome == Outcome::Cancelled, "{outcome:?}");
        let beside = case.get(&table, item(&format!("beside-{n}"))).await;
        assert_eq!(beside.is_some(), won, "transaction {n}");
        if won {
            assert_eq!(owner, Some(item("a").with("by", n.to_string())));
        }
    }
}

pub async fn transact_get_never_sees_half_a_transaction(case: &Case) {
    let table = case.keyed().await;
    let store = Arc::clone(&case.store);
    let both = Transaction::new(vec![
        Update::new(&table, item("a"), add_one()).into(),
        Update::new(&table, item("b"), add_one()).into(),
    ]);
    let writer = tokio::spawn(async move {
        for _ in 0..CALLERS {
            write_despite_others(store.as_ref(), &both).await;
            tokio::task::yield_now().await;
        }
    });
    while !writer.is_finished() {
        let gets = ["a", "b"].map(|pk| Get::new(&table, item(pk)));
        match case.store.transact_get(gets.to_vec()).await {
            Ok(found) => {
                let [a, b] = &found[..] else {
                    panic!("two items were asked for: {found:?}");
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

async fn write_despite_others(store: &dyn crate::Store, transaction: &Transaction) {
    for _ in 0..ATTEMPTS_MAX {
        match store.transact(transaction.clone()).await {
            Ok(()) => return,
            Err(error) => assert!(is_conflict(&error), "{error:?}"),
        }
    }
    panic!("others were always in the way");
}

fn is_conflict(error: &TransactError) -> bool {
    matches!(error, TransactError::Cancelled(reasons)
        if reasons.contains(&CancelReason::Conflict))
}

fn add_one() -> Changes {
    Changes::new().add("n", 1)
}
