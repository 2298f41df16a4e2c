//! Transactions: all or nothing, with a reason for each action.

use homeport_item::expression::{Condition, Path, Projection, Update as Changes};
use homeport_item::{Item, KeyKind};

use super::case::{Case, item, partition};
use super::outcome::Outcome;
use crate::{
    Action, CancelReason, ConditionCheck, Delete, Get, Put, Query, TRANSACTION_ACTIONS_MAX,
    TransactError, Transaction, Update,
};

pub async fn transaction_runs_every_kind_of_action(case: &Case) {
    let table = case.keyed().await;
    let other = case.sorted(KeyKind::N).await;
    case.put_all(&table, ["deleted", "updated", "checked"].map(item))
        .await;
    let sorted = item("put").with("sk", 1);
    transact(
        case,
        vec![
            Put::new(&table, item("put")).into(),
            Update::new(&table, item("updated"), add_one()).into(),
            Delete::new(&table, item("deleted")).into(),
            ConditionCheck::new(&table, item("checked"), exists()).into(),
            Put::new(&other, sorted.clone()).into(),
        ],
    )
    .await
    .expect("the transaction succeeds");
    assert_eq!(case.get(&table, item("put")).await, Some(item("put")));
    assert_eq!(
        case.get(&table, item("updated")).await,
        Some(item("updated").with("n", 1))
    );
    assert_eq!(case.get(&table, item("deleted")).await, None);
    assert_eq!(case.get(&other, sorted.clone()).await, Some(sorted));
}

pub async fn one_failed_condition_writes_nothing(case: &Case) {
    let table = case.keyed().await;
    case.put_all(&table, ["deleted", "updated"].map(item)).await;
    let failing: [Action; 4] = [
        Put::new(&table, item("absent")).when(exists()).into(),
        Update::new(&table, item("absent"), add_one())
            .when(exists())
            .into(),
        Delete::new(&table, item("absent")).when(exists()).into(),
        ConditionCheck::new(&table, item("absent"), exists()).into(),
    ];
    for failing in failing {
        let actions = vec![
            Put::new(&table, item("put")).into(),
            Update::new(&table, item("updated"), add_one()).into(),
            failing.clone(),
            Delete::new(&table, item("deleted")).into(),
        ];
        let outcome = transact(case, actions).await;
        assert_eq!(Outcome::of(outcome), Outcome::Cancelled, "{failing:?}");
        for (pk, expected) in [
            ("put", None),
            ("absent", None),
            ("updated", Some(item("updated"))),
            ("deleted", Some(item("deleted"))),
        ] {
            assert_eq!(case.get(&table, item(pk)).await, expected, "{failing:?}");
        }
    }
}

pub async fn cancel_reasons_follow_action_order(case: &Case) {
    let table = case.keyed().await;
    let there = item("there").with("n", 1);
    case.put(&table, there.clone()).await;
    let mut asking = Put::new(&table, item("there")).when(not_exists());
    asking.old_on_failure = true;
    let mut absent_check = ConditionCheck::new(&table, item("absent"), exists());
    absent_check.old_on_failure = true;
    let outcome = transact(
        case,
        vec![
            Put::new(&table, item("new")).when(not_exists()).into(),
            asking.into(),
            Delete::new(&table, item("other")).when(exists()).into(),
            absent_check.into(),
            Put::new(&table, item("last")).into(),
        ],
    )
    .await;
    let failed = |old: Option<Item>| CancelReason::ConditionFailed {
        old: old.map(Box::new),
    };
    let reasons = vec![
        CancelReason::None,
        failed(Some(there)),
        failed(None),
        failed(None),
        CancelReason::None,
    ];
    assert_eq!(outcome, Err(TransactError::Cancelled(reasons)));
}

pub async fn failing_action_cancels_the_transaction(case: &Case) {
    let table = case.keyed().await;
    case.put(&table, item("text").with("n", "x")).await;
    let outcome = transact(
        case,
        vec![
            Put::new(&table, item("put")).into(),
            Update::new(&table, item("text"), add_one()).into(),
        ],
    )
    .await;
    let Err(TransactError::Cancelled(reasons)) = outcome else {
        panic!("unexpected outcome {outcome:?}");
    };
    assert!(
        matches!(reasons[..], [CancelReason::None, CancelReason::Invalid(_)]),
        "{reasons:?}"
    );
    assert_eq!(case.get(&table, item("put")).await, None);
}

pub async fn condition_sees_previous_transaction(case: &Case) {
    let table = case.keyed().await;
    case.put(&table, item("a").with("n", 0)).await;
    let is_zero = Path::new("n").equals(0);
    let update = Update::new(&table, item("a"), add_one()).when(is_zero);
    let actions = vec![update.into(), Put::new(&table, item("b")).into()];
    assert_eq!(transact(case, actions.clone()).await, Ok(()));
    let repeated = transact(case, actions).await;
    assert_eq!(Outcome::of(repeated), Outcome::Cancelled);
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", 1))
    );
}

pub async fn two_actions_on_one_item_are_rejected(case: &Case) {
    let table = case.keyed().await;
    let actions: [Action; 4] = [
        Put::new(&table, item("a")).into(),
        Update::new(&table, item("a"), add_one()).into(),
        Delete::new(&table, item("a")).into(),
        ConditionCheck::new(&table, item("a"), not_exists()).into(),
    ];
    for first in &actions {
        for second in &actions {
            let both = vec![first.clone(), second.clone()];
            let outcome = Outcome::of(transact(case, both).await);
            assert_eq!(outcome, Outcome::Invalid, "{first:?}, {second:?}");
        }
    }
    assert_eq!(case.get(&table, item("a")).await, None);
}

pub async fn transaction_accepts_1_to_100_actions(case: &Case) {
    let table = case.keyed().await;
    let puts = |count: usize| -> Vec<Action> {
        (0..count)
            .map(|n| Put::new(&table, item(&format!("item-{n}"))).into())
            .collect()
    };
    for count in [0, TRANSACTION_ACTIONS_MAX + 1] {
        let outcome = Outcome::of(transact(case, puts(count)).await);
        assert_eq!(outcome, Outcome::Invalid, "{count} actions");
    }
    assert_eq!(case.get(&table, item("item-0")).await, None);
    let outcome = transact(case, puts(TRANSACTION_ACTIONS_MAX)).await;
    assert_eq!(outcome, Ok(()));
    let last = item(&format!("item-{}", TRANSACTION_ACTIONS_MAX - 1));
    assert_eq!(case.get(&table, last.clone()).await, Some(last));
}

pub async fn transaction_over_4_mib_is_rejected(case: &Case) {
    let table = case.keyed().await;
    let puts = (0..11)
        .map(|n| {
            let item = item(&format!("item-{n}")).with("text", "x".repeat(390 * 1024));
            Put::new(&table, item).into()
        })
        .collect();
    let outcome = Outcome::of(transact(case, puts).await);
    assert_eq!(outcome, Outcome::Invalid);
    assert_eq!(case.get(&table, item("item-0")).await, None);
}

pub async fn transactions_submitted_together_have_separate_outcomes(case: &Case) {
    let table = case.keyed().await;
    case.put(&table, item("1")).await;
    let claim = |n: usize| {
        let put = Put::new(&table, item(&n.to_string())).when(not_exists());
        let other_item = Put::new(&table, item(&format!("other-{n}")));
        Transaction::new(vec![put.into(), other_item.into()])
    };
    let mut transactions: Vec<_> = (0..4).map(claim).collect();
    transactions[2].actions.clear();
    let outcomes = case.store.transact_each(transactions).await;
    let outcomes: Vec<_> = outcomes.into_iter().map(Outcome::of).collect();
    assert_eq!(
        outcomes,
        [
            Outcome::Success,
            Outcome::Cancelled,
            Outcome::Invalid,
            Outcome::Success
        ]
    );
    for (n, written) in [(0, true), (1, false), (2, false), (3, true)] {
        let other_item = case.get(&table, item(&format!("other-{n}"))).await;
        assert_eq!(other_item.is_some(), written, "transaction {n}");
    }
    assert_eq!(case.store.transact_each(vec![]).await, []);
}

pub async fn many_transactions_can_be_submitted_together(case: &Case) {
    let table = case.sorted(KeyKind::N).await;
    let each: Vec<_> = (0..150)
        .map(|n| {
            let item = |pk: &str| item(pk).with("sk", n);
            Transaction::new(vec![
                Put::new(&table, item("a")).when(not_exists()).into(),
                Put::new(&table, item("b")).into(),
            ])
        })
        .collect();
    let count = each.len();
    let outcomes = case.store.transact_each(each).await;
    assert_eq!(outcomes, vec![Ok(()); count]);
    for pk in ["a", "b"] {
        let found = case.query(Query::new(&table, partition(pk))).await;
        assert_eq!(found.len(), count, "{pk}");
    }
}

pub async fn transact_get_keeps_the_request_order(case: &Case) {
    let table = case.keyed().await;
    let other = case.sorted(KeyKind::N).await;
    let sorted = item("a").with("sk", 1);
    case.put(&table, item("b").with("n", 1).with("m", 2)).await;
    case.put(&other, sorted.clone()).await;
    let mut projected = Get::new(&table, item("b"));
    projected.projection = Some(Projection::new(["m"]));
    let found = case
        .store
        .transact_get(vec![
            projected,
            Get::new(&table, item("absent")),
            Get::new(&other, sorted.clone()),
        ])
        .await;
    assert_eq!(
        found,
        Ok(vec![Some(Item::new().with("m", 2)), None, Some(sorted)])
    );
}

pub async fn transact_get_accepts_1_to_100_items(case: &Case) {
    let table = case.keyed().await;
    for (count, outcome) in [
        (0, Outcome::Invalid),
        (TRANSACTION_ACTIONS_MAX, Outcome::Success),
        (TRANSACTION_ACTIONS_MAX + 1, Outcome::Invalid),
    ] {
        let gets = (0..count)
            .map(|n| Get::new(&table, item(&format!("item-{n}"))))
            .collect();
        let result = case.store.transact_get(gets).await;
        assert_eq!(Outcome::of(result), outcome, "{count} items");
    }
}

async fn transact(case: &Case, actions: Vec<Action>) -> Result<(), TransactError> {
    case.store.transact(Transaction::new(actions)).await
}

fn add_one() -> Changes {
    Changes::new().add("n", 1)
}

fn exists() -> Condition {
    Condition::exists("pk")
}

fn not_exists() -> Condition {
    Condition::not_exists("pk")
}
