//! Transaction tokens: a repeated transaction has no effect, and a token is valid for one
//! transaction only.

use homeport_item::expression::{Condition, Update as Changes};

use super::case::{Case, item};
use crate::{Delete, Put, TransactError, Transaction, Update};

pub async fn repeated_token_does_nothing(case: &Case) {
    let table = case.keyed().await;
    let token = case.token("t");
    let count = || {
        let update = Update::new(&table, item("a"), add_one());
        Transaction::new(vec![update.into()]).with_token(&token)
    };
    for _ in 0..3 {
        assert_eq!(case.store.transact(count()).await, Ok(()));
    }
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", 1))
    );
    let delete = Delete::new(&table, item("a"));
    assert_eq!(case.store.delete(delete).await, Ok(None));
    assert_eq!(case.store.transact(count()).await, Ok(()));
    assert_eq!(case.get(&table, item("a")).await, None);
}

pub async fn repeated_token_skips_conditions(case: &Case) {
    let table = case.keyed().await;
    let put = Put::new(&table, item("a")).when(Condition::not_exists("pk"));
    let once = Transaction::new(vec![put.into()]).with_token(case.token("t"));
    assert_eq!(case.store.transact(once.clone()).await, Ok(()));
    assert_eq!(case.store.transact(once).await, Ok(()));
}

pub async fn token_identifies_one_transaction(case: &Case) {
    let table = case.keyed().await;
    let put = |n: i32| {
        let put = Put::new(&table, item("a").with("n", n));
        Transaction::new(vec![put.into()]).with_token(case.token("t"))
    };
    assert_eq!(case.store.transact(put(1)).await, Ok(()));
    let other = case.store.transact(put(2)).await;
    assert_eq!(other, Err(TransactError::TokenMismatch));
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", 1))
    );
}

pub async fn token_applies_among_submitted_transactions(case: &Case) {
    let table = case.keyed().await;
    let count = |pk: &str, token: &str| {
        let update = Update::new(&table, item(pk), add_one());
        Transaction::new(vec![update.into()]).with_token(case.token(token))
    };
    let first = count("a", "1");
    assert_eq!(case.store.transact(first.clone()).await, Ok(()));
    let outcomes = case
        .store
        .transact_each(vec![first, count("b", "2"), count("c", "1")])
        .await;
    assert_eq!(
        outcomes,
        [Ok(()), Ok(()), Err(TransactError::TokenMismatch)]
    );
    for (pk, n) in [("a", Some(1)), ("b", Some(1)), ("c", None)] {
        let expected = n.map(|n| item(pk).with("n", n));
        assert_eq!(case.get(&table, item(pk)).await, expected, "{pk}");
    }
}

fn add_one() -> Changes {
    Changes::new().add("n", 1)
}
