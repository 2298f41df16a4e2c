//! The list of all cases, as the macro that makes tests of them.

/// Makes one test of each case of the contract.
///
/// `make` is the path of an async function without arguments that returns a
/// [`Fixture`](crate::contract::Fixture). Groups can be named one by one where a backend cannot run
/// them all: `contract_tests!(make_store: conditions, updates)`.
#[macro_export]
macro_rules! contract_tests {
    ($make:path) => {
        $crate::contract_tests!(
            $make: batches, concurrency, conditions, errors, expired_reads, expired_strictly,
            indexes, key_order, paging, queries, returning, scans, tables, tokens, transactions,
            updates
        );
    };
    ($make:path: $($group:ident),+ $(,)?) => {
        $($crate::contract_group!($group, $make);)+
    };
}

/// The list of cases, by group.
#[doc(hidden)]
#[macro_export]
macro_rules! contract_group {
    (batches, $make:path) => {
        $crate::contract_group!(batches, $make, [
            batch_get_reads_from_several_tables,
            batch_get_projects_each_table_its_own_way,
            batch_get_of_many_large_items_gets_them_all,
            batch_get_has_one_to_a_hundred_keys,
            batch_get_of_one_key_twice_is_refused,
            batch_write_puts_and_deletes,
            batch_write_has_one_to_twenty_five_writes,
            batch_write_of_one_key_twice_is_refused,
            batch_write_with_one_invalid_write_writes_nothing,
        ]);
    };
    (concurrency, $make:path) => {
        $crate::contract_group!(concurrency, $make, [
            concurrent_increments_all_count,
            of_concurrent_conditional_puts_one_wins,
            of_transactions_handed_over_together_one_at_most_gets_the_item,
            transact_get_never_sees_half_a_transaction,
        ]);
    };
    (conditions, $make:path) => {
        $crate::contract_group!(conditions, $make, [
            conditional_put_of_a_new_item_writes,
            duplicate_conditional_put_writes_nothing,
            put_replaces_the_whole_item,
            update_whose_condition_fails_changes_nothing,
            update_whose_condition_fails_creates_nothing,
            delete_whose_condition_fails_keeps_the_item,
            delete_of_an_absent_item_succeeds_unless_a_condition_wants_it,
            an_absent_item_has_no_attributes,
            comparisons_go_by_type_and_value,
            documents_and_sets_are_equal_by_content,
            functions_look_at_types_sizes_and_contents,
            paths_reach_into_documents,
            and_or_not_combine,
        ]);
    };
    (errors, $make:path) => {
        $crate::contract_group!(errors, $make, [
            a_table_that_does_not_exist_is_missing,
            an_index_that_does_not_exist_is_missing,
            a_transaction_with_one_missing_table_writes_nothing,
            keys_that_do_not_fit_the_table_are_refused,
            keys_with_more_than_the_key_are_refused,
            empty_keys_are_refused,
            keys_have_a_length_limit,
            an_item_has_a_size_limit,
            documents_have_a_depth_limit,
            every_type_of_value_is_kept_as_it_is,
        ]);
    };
    (expired_reads, $make:path) => {
        $crate::contract_group!(expired_reads, $make, [
            get_does_not_see_expired_items,
            query_does_not_see_expired_items,
            counts_leave_expired_items_out,
            scan_does_not_see_expired_items,
            an_index_does_not_show_expired_items,
            batch_get_does_not_see_expired_items,
            transact_get_does_not_see_expired_items,
            a_projection_without_the_attribute_does_not_bring_an_item_back,
            expiry_more_than_five_years_ago_is_no_expiry,
        ]);
    };
    (expired_strictly, $make:path) => {
        $crate::contract_group!(expired_strictly, $make, [
            a_put_that_wants_no_item_replaces_an_expired_one,
            a_condition_that_wants_the_item_fails_on_an_expired_one,
            checks_of_transactions_do_not_see_expired_items,
            an_update_of_an_expired_item_starts_anew,
            removing_update_leaves_an_expired_item_absent,
            writes_do_not_answer_with_expired_items,
            an_index_without_the_attribute_does_not_show_expired_items,
        ]);
    };
    (indexes, $make:path) => {
        $crate::contract_group!(indexes, $make, [
            an_index_of_all_attributes_carries_whole_items,
            an_index_of_keys_carries_both_keys_only,
            an_index_that_includes_attributes_carries_these_too,
            an_index_sorts_by_its_own_key,
            items_without_the_index_key_are_not_in_it,
            items_with_equal_index_keys_all_appear_on_pages_of_any_size,
            an_item_that_moves_in_an_index_leaves_nothing_behind,
            an_item_that_loses_its_index_key_leaves_the_index,
            an_index_follows_attributes_that_are_not_its_keys,
            a_local_index_sorts_a_partition_another_way,
            an_index_can_be_scanned_and_filtered,
            values_that_cannot_be_index_keys_are_refused,
            a_consistent_read_of_a_global_index_is_refused,
            a_projection_past_what_a_global_index_carries_is_refused,
            an_index_page_starts_after_both_keys_only,
        ]);
    };
    (key_order, $make:path) => {
        $crate::contract_group!(key_order, $make, [
            string_sort_keys_come_in_byte_order,
            number_sort_keys_come_in_numeric_order,
            binary_sort_keys_come_in_unsigned_byte_order,
            comparators_pick_from_strings,
            comparators_pick_from_numbers,
            comparators_pick_from_binaries,
            bounds_need_not_be_keys_of_items,
            begins_with_picks_strings_by_their_bytes,
            begins_with_picks_binaries_with_lowest_and_highest_bytes,
        ]);
    };
    (paging, $make:path) => {
        $crate::contract_group!(paging, $make, [
            pages_of_every_size_give_each_item_once,
            pages_stay_within_the_key_condition,
            paging_goes_on_where_an_item_was_deleted,
            any_key_of_the_partition_is_a_place_to_start,
            a_page_ends_at_a_megabyte,
            keys_that_cannot_be_a_place_to_start_are_refused,
            a_limit_of_nothing_is_refused,
        ]);
    };
    (queries, $make:path) => {
        $crate::contract_group!(queries, $make, [
            partitions_do_not_mix,
            partition_keys_may_be_numbers_and_binaries,
            a_table_without_sort_key_has_one_item_a_partition,
            a_filter_decides_what_is_returned_not_what_is_scanned,
            a_limit_counts_items_before_the_filter,
            a_count_returns_no_items,
            a_projection_returns_only_what_it_names,
            a_filter_sees_what_the_projection_drops,
            key_conditions_that_do_not_fit_the_keys_are_refused,
            filters_on_the_keys_of_a_query_are_refused,
        ]);
    };
    (returning, $make:path) => {
        $crate::contract_group!(returning, $make, [
            put_answers_with_the_item_it_replaced,
            delete_answers_with_the_item_it_removed,
            update_answers_with_what_was_asked_for,
            update_answers_with_nothing_where_there_is_nothing,
            update_answers_with_the_nested_part_it_touched,
            put_and_delete_cannot_answer_with_new_attributes,
            a_failed_condition_answers_with_the_item_where_asked,
        ]);
    };
    (scans, $make:path) => {
        $crate::contract_group!(scans, $make, [
            a_scan_gives_each_item_once,
            pages_of_a_scan_give_each_item_once,
            an_empty_table_scans_to_nothing,
            segments_part_the_table,
            segments_that_cannot_be_are_refused,
            a_filter_of_a_scan_counts_what_it_looked_at,
            a_scan_may_filter_on_keys_and_project,
        ]);
    };
    (tables, $make:path) => {
        $crate::contract_group!(tables, $make, [
            ensuring_a_table_again_keeps_its_items,
            several_tables_are_created_at_once,
            an_index_added_later_has_the_items_from_before,
            an_index_that_is_not_asked_for_stays,
            time_to_live_can_be_added_later,
            other_keys_than_those_of_the_table_are_refused,
            other_keys_than_those_of_the_index_are_refused,
            schemas_that_cannot_be_are_refused,
        ]);
    };
    (tokens, $make:path) => {
        $crate::contract_group!(tokens, $make, [
            a_repeat_with_the_same_token_does_nothing,
            a_repeat_does_not_look_at_its_conditions_again,
            a_token_stands_for_one_transaction,
            a_token_counts_among_transactions_handed_over_together,
        ]);
    };
    (transactions, $make:path) => {
        $crate::contract_group!(transactions, $make, [
            every_kind_of_action_happens,
            one_failed_condition_writes_nothing,
            each_action_has_its_reason_in_order,
            an_action_that_does_not_fit_its_item_cancels_the_rest,
            a_condition_sees_what_the_transaction_before_wrote,
            two_actions_on_one_item_are_refused,
            a_transaction_has_one_to_a_hundred_actions,
            a_transaction_past_four_megabytes_is_refused,
            transactions_handed_over_together_have_outcomes_of_their_own,
            many_transactions_can_be_handed_over_together,
            transact_get_answers_in_the_order_asked,
            transact_get_asks_for_one_to_a_hundred_items,
        ]);
    };
    (updates, $make:path) => {
        $crate::contract_group!(updates, $make, [
            an_update_creates_a_missing_item,
            an_update_that_only_removes_creates_no_item,
            set_writes_attributes_and_keeps_the_others,
            set_reaches_into_documents,
            set_computes_from_the_item_as_it_was,
            if_not_exists_gives_a_first_value,
            list_append_puts_lists_together,
            remove_takes_attributes_members_and_elements_away,
            add_counts_exactly,
            add_and_delete_change_the_members_of_a_set,
            all_kinds_of_action_work_together,
            changes_that_do_not_fit_the_item_are_refused,
            updates_of_key_attributes_are_refused,
            paths_that_overlap_are_refused,
        ]);
    };
    ($group:ident, $make:path, [$($case:ident),+ $(,)?]) => {
        mod $group {
            #[allow(unused_imports)]
            use super::*;

            $(
                #[test]
                fn $case() {
                    let name = concat!(stringify!($group), "::", stringify!($case));
                    $crate::contract::run(name, $make(), $crate::contract::$group::$case);
                }
            )+
        }
    };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_case_is_listed() {
        let list = include_str!("list.rs");
        let (groups, cases) = list
            .split_once("macro_rules! contract_group")
            .expect("both");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/contract");
        let mut count = 0;
        for file in fs::read_dir(folder).expect("the folder is there") {
            let path = file.expect("a file").path();
            let group = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .expect("a name");
            let source = fs::read_to_string(&path).expect("a text");
            for line in source.lines() {
                let Some(rest) = line.strip_prefix("pub async fn ") else {
                    continue;
                };
                let (case, _) = rest.split_once('(').expect("a function");
                assert!(cases.contains(&format!(" {case},\n")), "{case} is not");
                assert!(groups.contains(&format!(" {group}")), "{group} is not");
                count += 1;
            }
        }
        assert!(count > 100, "only {count} cases were found");
    }
}
