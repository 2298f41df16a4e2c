//! Values of one device against each kind of condition.

use std::collections::BTreeSet;

use super::*;
use crate::alerts::definitions::condition::{Direction, Rate, Side, Threshold};
use crate::alerts::definitions::state_condition::{
    Equality, EqualityOperator, Fault, ValueChange, WantedValue,
};
use crate::alerts::types::{AlertId, DefinitionId, DeviceName};

fn watch() -> Watch {
    Watch {
        definition_id: DefinitionId::new(EpochMillis(0)),
        device: DeviceName::stored("van".to_owned()),
        epoch: 1,
        version: 0,
        judged: None,
        seen_at: None,
        streak: None,
        samples: Vec::new(),
        last: None,
        faults: BTreeSet::new(),
        open: None,
        notified_at: None,
    }
}

/// Judges values at seconds and returns the verdicts.
fn run(condition: &Condition, values: &[(i64, &str)]) -> Vec<&'static str> {
    let values = values.iter().map(|(secs, value)| {
        let value: Number = value.parse().expect("a number");
        (*secs, Item::new().with("v", value))
    });
    let verdicts = run_items(condition, &mut watch(), &values.collect::<Vec<_>>(), false);
    verdicts.into_iter().map(|(verdict, _)| verdict).collect()
}

/// Judges items at seconds and returns the verdicts with their reasons. A raised alert stays open until
/// it is cleared.
fn run_items(
    condition: &Condition,
    watch: &mut Watch,
    items: &[(i64, Item)],
    is_old: bool,
) -> Vec<(&'static str, String)> {
    let each = items.iter().map(|(secs, item)| {
        let at = EpochMillis(secs * 1000);
        let mark = Mark {
            at,
            tie: String::new(),
        };
        let observation = Observation {
            mark: &mark,
            stored_at: at,
            item,
            is_old,
        };
        match judge(condition, watch, observation) {
            Verdict::Nothing => ("nothing", String::new()),
            Verdict::Noted => ("noted", String::new()),
            Verdict::TooOld => ("too old", String::new()),
            Verdict::Raise(finding) => {
                watch.open = Some(AlertId::new(at));
                ("raise", finding.reason)
            }
            Verdict::Clear(finding) => {
                watch.open = None;
                ("clear", finding.reason)
            }
        }
    });
    each.collect()
}

fn words(expected: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let expected = expected.iter();
    expected
        .map(|(verdict, reason)| (*verdict, (*reason).to_owned()))
        .collect()
}

fn threshold(side: Side, raise: &str, clear: &str, min_secs: u32, min_count: u32) -> Condition {
    Condition::Threshold(Threshold {
        attribute: "v".parse().expect("a path"),
        side,
        raise: raise.parse().expect("a number"),
        clear: clear.parse().expect("a number"),
        min_secs,
        min_count,
    })
}

fn rate(direction: Direction, per_minute: i64, clear: i64, window_secs: u32) -> Condition {
    Condition::Rate(Rate {
        attribute: "v".parse().expect("a path"),
        direction,
        per_minute: per_minute.into(),
        clear_per_minute: clear.into(),
        window_secs,
    })
}

#[test]
fn threshold_raises_once_and_clears_at_its_clear_value() {
    let low = threshold(Side::Below, "12.0", "12.4", 0, 1);
    let values = [
        (1, "12.0"),
        (2, "11.9"),
        (3, "11.8"),
        (4, "12.3"),
        (5, "12.4"),
        (6, "12.1"),
        (7, "11.99"),
    ];
    assert_eq!(
        run(&low, &values),
        [
            "noted", "raise", "noted", "noted", "clear", "noted", "raise"
        ]
    );
    let high = threshold(Side::Above, "80", "70", 0, 1);
    assert_eq!(
        run(&high, &[(1, "80"), (2, "81"), (3, "71"), (4, "70")]),
        ["noted", "raise", "noted", "clear"]
    );
}

#[test]
fn threshold_waits_for_duration_and_count() {
    let lasting = threshold(Side::Above, "10", "10", 60, 1);
    assert_eq!(
        run(&lasting, &[(0, "11"), (59, "11"), (60, "11")]),
        ["noted", "noted", "raise"]
    );
    assert_eq!(
        run(&lasting, &[(0, "11"), (59, "9"), (60, "11"), (119, "11")]),
        ["noted", "noted", "noted", "noted"]
    );
    let counted = threshold(Side::Above, "10", "10", 0, 3);
    assert_eq!(
        run(
            &counted,
            &[
                (0, "11"),
                (1, "11"),
                (2, "9"),
                (3, "11"),
                (4, "11"),
                (5, "11")
            ]
        ),
        ["noted", "noted", "noted", "noted", "noted", "raise"]
    );
}

#[test]
fn values_that_are_not_newer_are_ignored() {
    let low = threshold(Side::Below, "12", "12.4", 0, 1);
    assert_eq!(
        run(
            &low,
            &[
                (10, "13"),
                (5, "11"),
                (10, "11"),
                (11, "11"),
                (9, "13"),
                (11, "13")
            ]
        ),
        ["noted", "nothing", "nothing", "raise", "nothing", "nothing"]
    );
}

#[test]
fn rate_raises_on_fast_change_and_clears_on_slow() {
    let rise = rate(Direction::Rise, 5, 2, 60);
    assert_eq!(
        run(
            &rise,
            &[
                (0, "20"),
                (10, "29"),
                (30, "23"),
                (60, "26"),
                (90, "24"),
                (120, "25")
            ]
        ),
        // Ten seconds are too short; the rates over the window are 6 a minute, 6, 2 and -1.
        ["noted", "noted", "raise", "noted", "clear", "noted"]
    );
    let fall = rate(Direction::Fall, 5, 5, 60);
    assert_eq!(run(&fall, &[(0, "20"), (60, "26")]), ["noted", "noted"]);
    assert_eq!(run(&fall, &[(0, "20"), (60, "14")]), ["noted", "raise"]);
    let either = rate(Direction::Either, 5, 5, 60);
    assert_eq!(run(&either, &[(0, "20"), (60, "14")]), ["noted", "raise"]);
}

#[test]
fn rate_window_keeps_few_samples_of_many_values() {
    let condition = rate(Direction::Rise, 5, 5, 60);
    let mut watch = watch();
    for tenth in 0..5000 {
        let mark = Mark {
            at: EpochMillis(tenth * 100),
            tie: String::new(),
        };
        let item = Item::new().with("v", tenth);
        let observation = Observation {
            mark: &mark,
            stored_at: mark.at,
            item: &item,
            is_old: false,
        };
        judge(&condition, &mut watch, observation);
        assert!(watch.samples.len() <= 62, "{}", watch.samples.len());
    }
}

#[test]
fn sign_of_life_is_stored_only_after_a_step() {
    let silent = Condition::Absence(Absence { after_secs: 100 });
    // Less than a twentieth of the time is not stored.
    assert_eq!(
        run(&silent, &[(0, "1"), (4, "1"), (5, "1"), (5, "1"), (3, "1")]),
        ["noted", "nothing", "noted", "nothing", "nothing"]
    );
}

fn equality(operator: EqualityOperator, value: WantedValue, min_count: u32) -> Condition {
    Condition::Equality(Equality {
        attribute: "v".parse().expect("a path"),
        operator,
        value,
        min_secs: 0,
        min_count,
    })
}

fn item(value: impl Into<homeport_item::Value>) -> Item {
    Item::new().with("v", value)
}

#[test]
fn equality_raises_at_its_value_and_clears_at_another() {
    let text = WantedValue::Text("F".parse().expect("a text"));
    let is_f = equality(EqualityOperator::Equals, text.clone(), 2);
    let items = [
        (1, item("F")),
        (2, item("C")),
        (3, item("F")),
        (4, item("F")),
        (5, item("F")),
        // An item without the attribute, or with a list in it, says nothing.
        (6, Item::new()),
        (7, item(homeport_item::Value::L(Vec::new()))),
        (8, item("C")),
    ];
    assert_eq!(
        run_items(&is_f, &mut watch(), &items, false),
        words(&[
            ("noted", ""),
            ("noted", ""),
            ("noted", ""),
            ("raise", "v is \"F\", 2 values in a row"),
            ("noted", ""),
            ("nothing", ""),
            ("nothing", ""),
            ("clear", "v is \"C\""),
        ])
    );
    let is_not_f = equality(EqualityOperator::Differs, text, 1);
    let items = [(1, item("F")), (2, item(5)), (3, item("F"))];
    assert_eq!(
        run_items(&is_not_f, &mut watch(), &items, false),
        words(&[
            ("noted", ""),
            ("raise", "v is 5, not \"F\""),
            ("clear", "v is \"F\"")
        ])
    );
}

#[test]
fn equality_compares_numbers_and_booleans_by_type() {
    let number = WantedValue::Number("2.50".parse().expect("a number"));
    let is_number = equality(EqualityOperator::Equals, number, 1);
    let two_and_a_half: Number = "2.5".parse().expect("a number");
    let items = [(1, item("2.5")), (2, item(two_and_a_half)), (3, item(2))];
    let verdicts = run_items(&is_number, &mut watch(), &items, false);
    let verdicts: Vec<_> = verdicts.iter().map(|(verdict, _)| *verdict).collect();
    assert_eq!(verdicts, ["noted", "raise", "clear"]);
    let is_false = equality(EqualityOperator::Equals, WantedValue::Boolean(false), 1);
    let items = [(1, item(0)), (2, item(false)), (3, item(true))];
    let verdicts = run_items(&is_false, &mut watch(), &items, false);
    let verdicts: Vec<_> = verdicts.iter().map(|(verdict, _)| *verdict).collect();
    assert_eq!(verdicts, ["noted", "raise", "clear"]);
}

#[test]
fn change_raises_until_the_value_stays_the_same() {
    let change = |clear_after_secs| {
        Condition::Change(ValueChange {
            attribute: "v".parse().expect("a path"),
            clear_after_secs,
        })
    };
    let items = [
        (0, item("1.0")),
        (10, item("1.0")),
        (20, item("1.1")),
        (30, item("1.1")),
        (40, item("1.2")),
        (99, item("1.2")),
        (100, item("1.2")),
    ];
    assert_eq!(
        run_items(&change(60), &mut watch(), &items, false),
        words(&[
            ("noted", ""),
            ("noted", ""),
            ("raise", "v changed from \"1.0\" to \"1.1\""),
            ("noted", ""),
            // Another change while the alert is open starts the time again.
            ("noted", ""),
            ("noted", ""),
            ("clear", "v is \"1.2\", unchanged for 60 seconds"),
        ])
    );
    let verdicts = run_items(&change(0), &mut watch(), &items, false);
    let verdicts: Vec<_> = verdicts.iter().map(|(verdict, _)| *verdict).collect();
    assert_eq!(
        verdicts,
        [
            "noted", "noted", "raise", "clear", "raise", "clear", "noted"
        ]
    );
}

#[test]
fn changes_of_long_texts_are_found() {
    let change = Condition::Change(ValueChange {
        attribute: "v".parse().expect("a path"),
        clear_after_secs: 0,
    });
    let (long, other) = ("a".repeat(10_000), "a".repeat(10_001));
    let items = [
        (1, item(long.as_str())),
        (2, item(long.as_str())),
        (3, item(other.as_str())),
    ];
    let mut watch = watch();
    let verdicts = run_items(&change, &mut watch, &items, false);
    assert_eq!(verdicts[1].0, "noted");
    assert_eq!(verdicts[2].0, "raise");
    assert!(verdicts[2].1.len() < 300, "{}", verdicts[2].1);
    let stored = watch.last.expect("a last value").value;
    assert!(stored.as_str().is_some_and(|text| text.len() < 100));
}

fn fault(attribute: &str, min_secs: u32, min_count: u32) -> Condition {
    Condition::Fault(Fault {
        attribute: attribute.parse().expect("a path"),
        min_secs,
        min_count,
    })
}

#[test]
fn fault_is_raised_until_none_is_reported() {
    let items = [
        (1, item("none")),
        (2, item("E42")),
        (3, item("E43")),
        (4, Item::new()),
        (5, item("")),
    ];
    assert_eq!(
        run_items(&fault("v", 0, 1), &mut watch(), &items, false),
        words(&[
            ("noted", ""),
            ("raise", "v is \"E42\""),
            ("noted", ""),
            ("nothing", ""),
            ("clear", "v reports no fault"),
        ])
    );
    let items = [(0, item(7)), (30, item(7)), (60, item(7))];
    let held = run_items(&fault("v", 60, 3), &mut watch(), &items, false);
    assert_eq!(
        held[2],
        (
            "raise",
            "v is 7, for 60 seconds, 3 values in a row".to_owned()
        )
    );
}

#[test]
fn fault_flags_are_remembered_one_by_one() {
    let flags = |flags: &[(&str, bool)]| {
        let flags = flags
            .iter()
            .map(|(name, on)| (format!("fault_{name}"), (*on).into()));
        item(homeport_item::Value::M(flags.collect()))
    };
    let items = [
        (1, flags(&[("a", true), ("b", true)])),
        // The other flag is still set, although this item does not mention it.
        (2, flags(&[("a", false)])),
        (3, flags(&[("c", false)])),
        (4, flags(&[("b", false)])),
    ];
    assert_eq!(
        run_items(&fault("v.fault_*", 0, 1), &mut watch(), &items, false),
        words(&[
            ("raise", "v.fault_a is true, and 1 more fault"),
            ("noted", ""),
            ("noted", ""),
            ("clear", "v.fault_* reports no fault"),
        ])
    );
}

#[test]
fn remembered_fault_flags_are_limited() {
    let flags = (0..1000).map(|number| (format!("{number}"), true.into()));
    let long = ("x".repeat(1000), true.into());
    let all = item(homeport_item::Value::M(flags.chain([long]).collect()));
    let mut watch = watch();
    let verdicts = run_items(&fault("v.*", 0, 1), &mut watch, &[(1, all)], false);
    assert_eq!(verdicts[0].0, "raise");
    assert_eq!(watch.faults.len(), 64);
}

#[test]
fn old_values_are_judged_and_raise_nothing() {
    let low = threshold(Side::Below, "12", "12.4", 0, 2);
    let mut watch = watch();
    let volts = |secs, volts: i64| (secs, item(volts));
    let old = run_items(
        &low,
        &mut watch,
        &[volts(1, 11), volts(2, 11), volts(3, 11)],
        true,
    );
    assert_eq!(
        old,
        words(&[("noted", ""), ("too old", ""), ("too old", "")])
    );
    // Their count goes on with the first value that is not old.
    let new = run_items(&low, &mut watch, &[volts(4, 11)], false);
    assert_eq!(new[0].0, "raise");
    // An old value clears what is open.
    let old = run_items(&low, &mut watch, &[volts(5, 13)], true);
    assert_eq!(old[0].0, "clear");
    let silent = Condition::Absence(Absence { after_secs: 100 });
    let mut watch = self::watch();
    assert_eq!(
        run_items(&silent, &mut watch, &[volts(1, 1)], true)[0].0,
        "nothing"
    );
    assert_eq!(watch.seen_at, None);
}
