//! Tests of the checker: it detects every kind of anomaly, and none in serial histories.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{Kind, check};
use crate::history::{Action, History, Key, Outcome, Transaction, Value};

fn append(key: Key, value: Value) -> Action {
    Action::Append { key, value }
}

fn read(key: Key, values: &[Value]) -> Action {
    Action::Read {
        key,
        values: values.to_vec(),
    }
}

fn transaction(outcome: Outcome, times: (u64, u64), actions: &[Action]) -> Transaction {
    Transaction {
        actions: actions.to_vec(),
        outcome,
        invoked_ns: times.0,
        completed_ns: times.1,
    }
}

/// Committed transactions that all run at the same time.
fn concurrent(transactions: &[&[Action]]) -> History {
    let transactions = transactions
        .iter()
        .map(|actions| transaction(Outcome::Committed, (0, 100), actions));
    History {
        transactions: transactions.collect(),
    }
}

/// Committed transactions one after the other.
fn sequential(transactions: &[&[Action]]) -> History {
    let transactions = (1..)
        .zip(transactions)
        .map(|(at, actions)| transaction(Outcome::Committed, (at * 10, at * 10 + 5), actions));
    History {
        transactions: transactions.collect(),
    }
}

#[track_caller]
fn expect(history: &History, kind: Kind, is_real_time: bool) {
    let anomalies = check(history);
    assert!(
        anomalies
            .iter()
            .any(|anomaly| anomaly.kind == kind && anomaly.is_real_time == is_real_time),
        "expected {kind:?}, found {anomalies:?}"
    );
}

#[test]
fn serialisable_history_has_no_anomaly() {
    let history = sequential(&[
        &[append(1, 1), append(2, 1)],
        &[read(1, &[1]), read(2, &[1])],
        &[append(1, 2), read(1, &[1, 2])],
        &[read(1, &[1, 2]), read(2, &[1])],
    ]);
    assert_eq!(check(&history), []);
}

#[test]
fn value_read_twice_is_found() {
    let history = concurrent(&[&[append(1, 1)], &[read(1, &[1, 1])]]);
    expect(&history, Kind::DuplicateValue, false);
}

#[test]
fn value_of_nobody_is_found() {
    expect(&concurrent(&[&[read(1, &[7])]]), Kind::UnknownValue, false);
}

#[test]
fn disagreeing_orders_are_found() {
    let history = concurrent(&[
        &[append(1, 1)],
        &[append(1, 2)],
        &[read(1, &[1, 2])],
        &[read(1, &[2])],
    ]);
    expect(&history, Kind::IncompatibleOrder, false);
}

#[test]
fn own_append_that_is_missing_is_found() {
    let history = concurrent(&[&[append(1, 1), read(1, &[])]]);
    expect(&history, Kind::Internal, false);
}

#[test]
fn aborted_read_is_found() {
    let mut history = concurrent(&[&[append(1, 1)], &[read(1, &[1])]]);
    history.transactions[0].outcome = Outcome::Aborted;
    expect(&history, Kind::AbortedRead, false);
}

#[test]
fn intermediate_read_is_found() {
    let history = concurrent(&[
        &[append(1, 1), append(1, 2)],
        &[read(1, &[1])],
        &[read(1, &[1, 2])],
    ]);
    expect(&history, Kind::IntermediateRead, false);
}

#[test]
fn write_cycle_is_found() {
    let history = concurrent(&[
        &[append(1, 1), append(2, 1)],
        &[append(1, 2), append(2, 2)],
        &[read(1, &[1, 2])],
        &[read(2, &[2, 1])],
    ]);
    expect(&history, Kind::WriteCycle, false);
}

#[test]
fn circular_information_flow_is_found() {
    let history = concurrent(&[
        &[append(1, 1), read(2, &[1])],
        &[append(2, 1), read(1, &[1])],
    ]);
    expect(&history, Kind::CircularInformationFlow, false);
}

#[test]
fn torn_read_is_found() {
    let history = concurrent(&[
        &[append(1, 1), append(2, 1)],
        &[read(1, &[1]), read(2, &[])],
        &[read(2, &[1])],
    ]);
    expect(&history, Kind::SingleAntiDependency, false);
}

#[test]
fn half_of_an_unknown_transaction_is_found() {
    let mut history = concurrent(&[
        &[append(1, 1), append(2, 1)],
        &[read(1, &[1]), read(2, &[])],
    ]);
    history.transactions[0].outcome = Outcome::Unknown;
    expect(&history, Kind::SingleAntiDependency, false);
}

#[test]
fn lost_update_is_found() {
    let history = concurrent(&[
        &[read(1, &[]), append(1, 1)],
        &[read(1, &[]), append(1, 2)],
        &[read(1, &[1, 2])],
    ]);
    expect(&history, Kind::SingleAntiDependency, false);
}

#[test]
fn write_skew_is_found() {
    let history = concurrent(&[
        &[read(1, &[]), append(2, 1)],
        &[read(2, &[]), append(1, 1)],
        &[read(1, &[1]), read(2, &[1])],
    ]);
    expect(&history, Kind::AntiDependencyCycle, false);
}

#[test]
fn lost_acknowledged_append_is_found() {
    let history = sequential(&[&[append(1, 1)], &[append(1, 2)], &[read(1, &[1])]]);
    expect(&history, Kind::SingleAntiDependency, true);
}

#[test]
fn stale_read_is_found() {
    let history = sequential(&[&[append(1, 1)], &[read(1, &[])], &[read(1, &[1])]]);
    expect(&history, Kind::SingleAntiDependency, true);
}

#[test]
fn value_that_vanishes_is_found() {
    let history = sequential(&[&[append(1, 1)], &[read(1, &[1])], &[read(1, &[])]]);
    expect(&history, Kind::SingleAntiDependency, true);
}

/// More transactions than a round of a long run has.
#[test]
fn lost_append_is_found_in_long_history() {
    const PER_LIST: u32 = 100;
    let (mut all, mut list) = (Vec::new(), Vec::new());
    for number in 0..30_000 {
        let key = number / PER_LIST;
        if number % PER_LIST == 0 {
            list.clear();
        }
        all.push(vec![append(key, number)]);
        // The first value is acknowledged, but no read shows it.
        if number > 0 {
            list.push(number);
        }
        if number % 5 == 4 {
            all.push(vec![read(key, &list), append(key + 1_000_000, number)]);
        }
    }
    let first_list: Vec<Value> = (1..PER_LIST).collect();
    all.push(vec![read(0, &first_list)]);
    let all: Vec<&[Action]> = all.iter().map(Vec::as_slice).collect();
    expect(&sequential(&all), Kind::SingleAntiDependency, true);
}

#[test]
fn unknown_append_may_be_missing() {
    let mut history = sequential(&[&[append(1, 1)], &[append(1, 2)], &[read(1, &[1])]]);
    history.transactions[1].outcome = Outcome::Unknown;
    assert_eq!(check(&history), []);
}

#[test]
fn unknown_append_may_show_later() {
    let mut history = sequential(&[
        &[append(1, 1)],
        &[append(1, 2)],
        &[read(1, &[1])],
        &[read(1, &[1, 2])],
    ]);
    history.transactions[1].outcome = Outcome::Unknown;
    assert_eq!(check(&history), []);
}

/// A transaction as numbers: for each action a key, and whether it reads.
fn plan() -> impl Strategy<Value = Vec<(Vec<(Key, bool)>, u8)>> {
    let actions = prop::collection::vec((0..4_u32, any::<bool>()), 1..4);
    prop::collection::vec((actions, 0..10_u8), 0..60)
}

proptest! {
    /// Runs transactions one after the other on real lists. Some responses are lost, some transactions abort, and intervals
    /// overlap.
    #[test]
    fn serial_histories_have_no_anomaly(plan in plan(), overlap in 0..30_u64) {
        let mut lists: HashMap<Key, Vec<Value>> = HashMap::new();
        let mut history = History::default();
        let mut next = 0;
        for (at, (actions, chance)) in (1_u64..).zip(plan) {
            let outcome = match chance {
                0 => Outcome::Aborted,
                1 | 2 => Outcome::Unknown,
                _ => Outcome::Committed,
            };
            let happens = chance > 1;
            let mut done = Vec::new();
            for (key, reads) in actions {
                if reads {
                    done.push(read(key, lists.entry(key).or_default()));
                    continue;
                }
                next += 1;
                done.push(append(key, next));
                if happens {
                    lists.entry(key).or_default().push(next);
                }
            }
            // It takes effect at `at * 10`, between its call and its response.
            let times = ((at * 10).saturating_sub(overlap), at * 10 + overlap);
            // The reads of an aborted transaction are not compared.
            history.transactions.push(transaction(outcome, times, &done));
        }
        prop_assert_eq!(check(&history), []);
    }
}
