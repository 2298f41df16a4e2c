//! Where other implementations of DynamoDB are wrong, case by case. Our code is not bent to them: the
//! case is expected to fail on that one implementation, and the test says so when it no longer does.

use homeport_store::contract::Expectation;
use homeport_test_backends::Kind;

/// The case, whose fault it is, and what is done wrong.
const DEVIATIONS: &[(&str, Kind, &str)] = &[
    (
        "indexes::a_projection_past_what_a_global_index_carries_is_refused",
        Kind::Dynoxide,
        "answers without the attribute instead of refusing",
    ),
    (
        "indexes::values_that_cannot_be_index_keys_are_refused",
        Kind::Dynoxide,
        "takes index keys that are too long",
    ),
    (
        "queries::key_conditions_that_do_not_fit_the_keys_are_refused",
        Kind::Dynoxide,
        "takes an empty string for a key",
    ),
    (
        "returning::update_answers_with_nothing_where_there_is_nothing",
        Kind::Dynoxide,
        "answers ALL_OLD of a new item with its key",
    ),
    (
        "tables::an_index_added_later_has_the_items_from_before",
        Kind::Dynoxide,
        "fills an index with items whose value cannot be its key",
    ),
    (
        "transactions::transact_get_answers_in_the_order_asked",
        Kind::Dynoxide,
        "adds the key to a projection",
    ),
    (
        "updates::an_update_that_only_removes_creates_no_item",
        Kind::Dynoxide,
        "creates an item of the key",
    ),
    (
        "batches::batch_get_has_one_to_a_hundred_keys",
        Kind::Moto,
        "takes a batch without keys",
    ),
    (
        "batches::batch_write_has_one_to_twenty_five_writes",
        Kind::Moto,
        "takes a batch without writes",
    ),
    (
        "batches::batch_write_of_one_key_twice_is_refused",
        Kind::Moto,
        "takes two puts of one key",
    ),
    (
        "batches::batch_write_with_one_invalid_write_writes_nothing",
        Kind::Moto,
        "writes those before the invalid one",
    ),
    (
        "conditions::comparisons_go_by_type_and_value",
        Kind::Moto,
        "refuses to compare two types",
    ),
    (
        "conditions::functions_look_at_types_sizes_and_contents",
        Kind::Moto,
        "begins_with does not know binaries",
    ),
    (
        "errors::an_index_that_does_not_exist_is_missing",
        Kind::Moto,
        "takes the table for missing",
    ),
    (
        "errors::an_item_has_a_size_limit",
        Kind::Moto,
        "counts the item larger than DynamoDB does",
    ),
    (
        "errors::documents_have_a_depth_limit",
        Kind::Moto,
        "has no limit",
    ),
    (
        "errors::empty_keys_are_refused",
        Kind::Moto,
        "updates an item with an empty key",
    ),
    (
        "errors::keys_have_a_length_limit",
        Kind::Moto,
        "has no limit for gets",
    ),
    (
        "errors::keys_that_do_not_fit_the_table_are_refused",
        Kind::Moto,
        "takes keys of another type",
    ),
    (
        "errors::keys_with_more_than_the_key_are_refused",
        Kind::Moto,
        "transact get takes more than the key",
    ),
    (
        "expired_reads::a_projection_without_the_attribute_does_not_bring_an_item_back",
        Kind::Moto,
        "breaks on a projection of an attribute that some items lack",
    ),
    (
        "expired_reads::counts_leave_expired_items_out",
        Kind::Moto,
        "breaks on a projection of an attribute that some items lack",
    ),
    (
        "indexes::a_projection_past_what_a_global_index_carries_is_refused",
        Kind::Moto,
        "answers instead of refusing",
    ),
    (
        "indexes::an_index_page_starts_after_both_keys_only",
        Kind::Moto,
        "takes a start without the index's key",
    ),
    (
        "indexes::values_that_cannot_be_index_keys_are_refused",
        Kind::Moto,
        "takes index keys of another type",
    ),
    (
        "paging::a_limit_of_nothing_is_refused",
        Kind::Moto,
        "takes a limit of 0",
    ),
    (
        "paging::keys_that_cannot_be_a_place_to_start_are_refused",
        Kind::Moto,
        "breaks on an empty start",
    ),
    (
        "queries::a_projection_returns_only_what_it_names",
        Kind::Moto,
        "takes names of a nested path for unused",
    ),
    (
        "queries::filters_on_the_keys_of_a_query_are_refused",
        Kind::Moto,
        "takes filters on keys",
    ),
    (
        "queries::key_conditions_that_do_not_fit_the_keys_are_refused",
        Kind::Moto,
        "takes keys of another type",
    ),
    (
        "returning::update_answers_with_nothing_where_there_is_nothing",
        Kind::Moto,
        "adds the key to UPDATED_NEW",
    ),
    (
        "returning::update_answers_with_the_nested_part_it_touched",
        Kind::Moto,
        "answers with the whole attribute",
    ),
    (
        "tables::an_index_added_later_has_the_items_from_before",
        Kind::Moto,
        "breaks on a scan of an index with values that cannot be its key",
    ),
    (
        "tokens::a_repeat_does_not_look_at_its_conditions_again",
        Kind::Moto,
        "does not know tokens",
    ),
    (
        "tokens::a_repeat_with_the_same_token_does_nothing",
        Kind::Moto,
        "does not know tokens",
    ),
    (
        "tokens::a_token_counts_among_transactions_handed_over_together",
        Kind::Moto,
        "does not know tokens",
    ),
    (
        "tokens::a_token_stands_for_one_transaction",
        Kind::Moto,
        "does not know tokens",
    ),
    (
        "transactions::a_transaction_has_one_to_a_hundred_actions",
        Kind::Moto,
        "takes a transaction without actions",
    ),
    (
        "transactions::a_transaction_past_four_megabytes_is_refused",
        Kind::Moto,
        "has no limit",
    ),
    (
        "transactions::an_action_that_does_not_fit_its_item_cancels_the_rest",
        Kind::Moto,
        "answers with a plain validation error instead of reasons",
    ),
    (
        "transactions::transact_get_answers_in_the_order_asked",
        Kind::Moto,
        "ignores projections",
    ),
    (
        "transactions::transact_get_asks_for_one_to_a_hundred_items",
        Kind::Moto,
        "takes a transaction without items",
    ),
    (
        "transactions::transactions_handed_over_together_have_outcomes_of_their_own",
        Kind::Moto,
        "takes an update that does not fit its item",
    ),
    (
        "updates::an_update_creates_a_missing_item",
        Kind::Moto,
        "breaks on an update without expression",
    ),
    (
        "updates::an_update_that_only_removes_creates_no_item",
        Kind::Moto,
        "creates an item of the key",
    ),
    (
        "updates::changes_that_do_not_fit_the_item_are_refused",
        Kind::Moto,
        "takes a path into a string",
    ),
    (
        "updates::paths_that_overlap_are_refused",
        Kind::Moto,
        "breaks on them",
    ),
    (
        "updates::set_computes_from_the_item_as_it_was",
        Kind::Moto,
        "loses digits of large sums",
    ),
    (
        "updates::set_writes_attributes_and_keeps_the_others",
        Kind::Moto,
        "breaks on an update without expression",
    ),
];

pub(crate) fn expectation(kind: Kind, case: &str) -> Expectation {
    let known = |(wrong, whose, _): &(&str, Kind, &str)| *wrong == case && *whose == kind;
    if DEVIATIONS.iter().any(known) {
        Expectation::Fails
    } else {
        Expectation::Holds
    }
}
