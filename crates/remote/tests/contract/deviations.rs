//! Known deviations of third-party implementations of DynamoDB, by case. Our code does not work
//! around them: the case is expected to fail on that implementation, and the test fails as soon as
//! it passes.

use homeport_store::contract::Expectation;
use homeport_test_backends::Kind;

/// The case, the implementation, and its mistake.
const DEVIATIONS: &[(&str, Kind, &str)] = &[
    (
        "indexes::projection_beyond_global_index_is_rejected",
        Kind::Dynoxide,
        "omits the attribute instead of failing",
    ),
    (
        "indexes::invalid_index_key_values_are_rejected",
        Kind::Dynoxide,
        "accepts index keys that are too long",
    ),
    (
        "queries::mismatched_key_conditions_are_rejected",
        Kind::Dynoxide,
        "accepts an empty string for a key",
    ),
    (
        "returning::update_returns_nothing_if_nothing_exists",
        Kind::Dynoxide,
        "returns the key as ALL_OLD of a new item",
    ),
    (
        "tables::added_index_contains_existing_items",
        Kind::Dynoxide,
        "fills an index with items whose value cannot be its key",
    ),
    (
        "transactions::transact_get_keeps_the_request_order",
        Kind::Dynoxide,
        "adds the key to a projection",
    ),
    (
        "updates::remove_only_update_creates_no_item",
        Kind::Dynoxide,
        "creates an item with the key only",
    ),
    (
        "batches::batch_get_accepts_1_to_100_keys",
        Kind::Moto,
        "accepts a batch without keys",
    ),
    (
        "batches::batch_write_accepts_1_to_25_writes",
        Kind::Moto,
        "accepts a batch without writes",
    ),
    (
        "batches::batch_write_rejects_duplicate_keys",
        Kind::Moto,
        "accepts two puts of one key",
    ),
    (
        "batches::invalid_write_fails_the_whole_batch",
        Kind::Moto,
        "writes the items before the invalid one",
    ),
    (
        "conditions::comparisons_depend_on_type_and_value",
        Kind::Moto,
        "rejects comparisons of different types",
    ),
    (
        "conditions::functions_test_types_sizes_and_contents",
        Kind::Moto,
        "begins_with does not support binaries",
    ),
    (
        "errors::missing_index_is_an_error",
        Kind::Moto,
        "reports a missing table",
    ),
    (
        "errors::item_size_is_limited",
        Kind::Moto,
        "counts the item larger than DynamoDB does",
    ),
    (
        "errors::document_depth_is_limited",
        Kind::Moto,
        "has no limit",
    ),
    (
        "errors::empty_keys_are_rejected",
        Kind::Moto,
        "updates an item with an empty key",
    ),
    (
        "errors::key_length_is_limited",
        Kind::Moto,
        "has no limit for gets",
    ),
    (
        "errors::mismatched_keys_are_rejected",
        Kind::Moto,
        "accepts keys of another type",
    ),
    (
        "errors::keys_with_extra_attributes_are_rejected",
        Kind::Moto,
        "transact get accepts more than the key",
    ),
    (
        "expired_reads::projection_without_ttl_attribute_hides_expired_items",
        Kind::Moto,
        "fails on a projection of an attribute that some items lack",
    ),
    (
        "expired_reads::counts_exclude_expired_items",
        Kind::Moto,
        "fails on a projection of an attribute that some items lack",
    ),
    (
        "indexes::projection_beyond_global_index_is_rejected",
        Kind::Moto,
        "returns a result instead of an error",
    ),
    (
        "indexes::index_start_key_contains_both_keys_only",
        Kind::Moto,
        "accepts a start without the index's key",
    ),
    (
        "indexes::invalid_index_key_values_are_rejected",
        Kind::Moto,
        "accepts index keys of another type",
    ),
    (
        "paging::zero_limit_is_rejected",
        Kind::Moto,
        "accepts a limit of 0",
    ),
    (
        "paging::invalid_start_keys_are_rejected",
        Kind::Moto,
        "fails on an empty start",
    ),
    (
        "queries::projection_returns_only_selected_attributes",
        Kind::Moto,
        "reports names in a nested path as unused",
    ),
    (
        "queries::query_filters_on_keys_are_rejected",
        Kind::Moto,
        "accepts filters on keys",
    ),
    (
        "queries::mismatched_key_conditions_are_rejected",
        Kind::Moto,
        "accepts keys of another type",
    ),
    (
        "returning::update_returns_nothing_if_nothing_exists",
        Kind::Moto,
        "adds the key to UPDATED_NEW",
    ),
    (
        "returning::update_returns_the_updated_nested_part",
        Kind::Moto,
        "returns the whole attribute",
    ),
    (
        "tables::added_index_contains_existing_items",
        Kind::Moto,
        "fails on a scan of an index with values that cannot be its key",
    ),
    (
        "tokens::repeated_token_skips_conditions",
        Kind::Moto,
        "ignores tokens",
    ),
    (
        "tokens::repeated_token_does_nothing",
        Kind::Moto,
        "ignores tokens",
    ),
    (
        "tokens::token_applies_among_submitted_transactions",
        Kind::Moto,
        "ignores tokens",
    ),
    (
        "tokens::token_identifies_one_transaction",
        Kind::Moto,
        "ignores tokens",
    ),
    (
        "transactions::transaction_accepts_1_to_100_actions",
        Kind::Moto,
        "accepts a transaction without actions",
    ),
    (
        "transactions::transaction_over_4_mib_is_rejected",
        Kind::Moto,
        "has no limit",
    ),
    (
        "transactions::failing_action_cancels_the_transaction",
        Kind::Moto,
        "returns a plain validation error instead of reasons",
    ),
    (
        "transactions::transact_get_keeps_the_request_order",
        Kind::Moto,
        "ignores projections",
    ),
    (
        "transactions::transact_get_accepts_1_to_100_items",
        Kind::Moto,
        "accepts a transaction without items",
    ),
    (
        "transactions::transactions_submitted_together_have_separate_outcomes",
        Kind::Moto,
        "accepts an update that does not fit its item",
    ),
    (
        "updates::update_creates_a_missing_item",
        Kind::Moto,
        "fails on an update without expression",
    ),
    (
        "updates::remove_only_update_creates_no_item",
        Kind::Moto,
        "creates an item with the key only",
    ),
    (
        "updates::updates_that_do_not_fit_are_rejected",
        Kind::Moto,
        "accepts a path into a string",
    ),
    (
        "updates::overlapping_paths_are_rejected",
        Kind::Moto,
        "fails on them",
    ),
    (
        "updates::set_reads_the_original_item",
        Kind::Moto,
        "loses digits of large sums",
    ),
    (
        "updates::set_writes_attributes_and_keeps_the_others",
        Kind::Moto,
        "fails on an update without expression",
    ),
];

pub(crate) fn expectation(kind: Kind, case: &str) -> Expectation {
    let known = |(wrong, whose, _): &(&str, Kind, &str)| *wrong == case && *whose == kind;
    if DEVIATIONS.iter().any(known) {
        Expectation::Fails
    } else {
        Expectation::Passes
    }
}
