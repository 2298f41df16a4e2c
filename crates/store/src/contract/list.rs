//! The list of all cases, in the macro that turns them into tests.

/// Creates one test for each case of the contract.
///
/// `make` is the path of an async function without arguments that returns a
/// [`Fixture`](crate::contract::Fixture). A backend that does not support all groups lists the ones
/// it supports: `contract_tests!(make_store: conditions, updates)`.
#[macro_export]
macro_rules! contract_tests {
    ($make:path) => {
        $crate::contract_tests!(
            $make: batches, concurrency, conditions, errors, expired_reads, expired_writes,
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
            batch_get_reads_several_tables,
            batch_get_applies_projection_per_table,
            batch_get_returns_many_large_items,
            batch_get_accepts_1_to_100_keys,
            batch_get_rejects_duplicate_keys,
            batch_write_puts_and_deletes,
            batch_write_accepts_1_to_25_writes,
            batch_write_rejects_duplicate_keys,
            invalid_write_fails_the_whole_batch,
        ]);
    };
    (concurrency, $make:path) => {
        $crate::contract_group!(concurrency, $make, [
            concurrent_increments_all_count,
            one_concurrent_conditional_put_wins,
            conflicting_submitted_transactions_have_at_most_one_winner,
            transact_get_never_sees_partial_transactions,
        ]);
    };
    (conditions, $make:path) => {
        $crate::contract_group!(conditions, $make, [
            conditional_put_creates_a_new_item,
            duplicate_conditional_put_writes_nothing,
            put_replaces_the_whole_item,
            failed_conditional_update_changes_nothing,
            failed_conditional_update_creates_nothing,
            failed_conditional_delete_keeps_the_item,
            deleting_missing_item_succeeds_without_condition,
            missing_item_has_no_attributes,
            comparisons_depend_on_type_and_value,
            documents_and_sets_compare_by_content,
            functions_test_types_sizes_and_contents,
            paths_select_nested_values,
            and_or_not_combine,
        ]);
    };
    (errors, $make:path) => {
        $crate::contract_group!(errors, $make, [
            missing_table_is_an_error,
            missing_index_is_an_error,
            transaction_with_missing_table_writes_nothing,
            mismatched_keys_are_rejected,
            keys_with_extra_attributes_are_rejected,
            empty_keys_are_rejected,
            key_length_is_limited,
            item_size_is_limited,
            document_depth_is_limited,
            every_value_type_round_trips,
        ]);
    };
    (expired_reads, $make:path) => {
        $crate::contract_group!(expired_reads, $make, [
            get_does_not_see_expired_items,
            query_does_not_see_expired_items,
            counts_exclude_expired_items,
            scan_does_not_see_expired_items,
            index_does_not_show_expired_items,
            batch_get_does_not_see_expired_items,
            transact_get_does_not_see_expired_items,
            projection_without_ttl_attribute_hides_expired_items,
            expiry_over_five_years_old_is_ignored,
        ]);
    };
    (expired_writes, $make:path) => {
        $crate::contract_group!(expired_writes, $make, [
            put_if_absent_replaces_expired_item,
            existence_condition_fails_on_expired_item,
            condition_checks_do_not_see_expired_items,
            update_of_expired_item_creates_new_item,
            remove_only_update_keeps_expired_item_absent,
            writes_do_not_return_expired_items,
            index_without_ttl_attribute_hides_expired_items,
        ]);
    };
    (indexes, $make:path) => {
        $crate::contract_group!(indexes, $make, [
            index_with_all_projection_returns_whole_items,
            keys_only_index_returns_both_keys,
            include_index_returns_included_attributes,
            index_sorts_by_its_own_key,
            items_without_index_key_are_not_indexed,
            paging_returns_all_equal_index_keys,
            changed_index_key_moves_the_entry,
            removed_index_key_deletes_the_entry,
            index_follows_non_key_attributes,
            local_index_sorts_by_its_own_key,
            indexes_support_scans_and_filters,
            invalid_index_key_values_are_rejected,
            consistent_read_of_global_index_is_rejected,
            projection_beyond_global_index_is_rejected,
            index_start_key_contains_both_keys_only,
        ]);
    };
    (key_order, $make:path) => {
        $crate::contract_group!(key_order, $make, [
            string_sort_keys_come_in_byte_order,
            number_sort_keys_come_in_numeric_order,
            binary_sort_keys_come_in_unsigned_byte_order,
            comparators_select_strings,
            comparators_select_numbers,
            comparators_select_binaries,
            bounds_need_not_be_existing_keys,
            begins_with_matches_strings_by_bytes,
            begins_with_matches_lowest_and_highest_bytes,
        ]);
    };
    (paging, $make:path) => {
        $crate::contract_group!(paging, $make, [
            pages_return_each_item_once,
            pages_stay_within_the_key_condition,
            paging_continues_after_a_deleted_item,
            any_key_of_the_partition_can_start_a_page,
            page_ends_at_1_mib,
            invalid_start_keys_are_rejected,
            zero_limit_is_rejected,
        ]);
    };
    (queries, $make:path) => {
        $crate::contract_group!(queries, $make, [
            partitions_do_not_mix,
            partition_keys_may_be_numbers_and_binaries,
            table_without_sort_key_has_one_item_per_partition,
            filter_limits_returned_not_scanned_items,
            limit_counts_items_before_the_filter,
            count_returns_no_items,
            projection_returns_only_selected_attributes,
            filter_sees_attributes_outside_the_projection,
            mismatched_key_conditions_are_rejected,
            query_filters_on_keys_are_rejected,
        ]);
    };
    (returning, $make:path) => {
        $crate::contract_group!(returning, $make, [
            put_returns_the_replaced_item,
            delete_returns_the_deleted_item,
            update_returns_the_requested_values,
            update_returns_nothing_if_nothing_exists,
            update_returns_the_updated_nested_part,
            put_and_delete_reject_new_return_values,
            failed_condition_returns_item_on_request,
        ]);
    };
    (scans, $make:path) => {
        $crate::contract_group!(scans, $make, [
            scan_returns_each_item_once,
            scan_pages_return_each_item_once,
            scan_of_empty_table_returns_nothing,
            segments_partition_the_table,
            invalid_segments_are_rejected,
            filtered_scan_counts_scanned_items,
            scan_can_filter_on_keys_and_project,
        ]);
    };
    (tables, $make:path) => {
        $crate::contract_group!(tables, $make, [
            ensuring_existing_table_keeps_its_items,
            several_tables_are_created_together,
            added_index_contains_existing_items,
            unlisted_index_is_kept,
            time_to_live_can_be_added_later,
            changed_table_keys_are_rejected,
            changed_index_keys_are_rejected,
            invalid_schemas_are_rejected,
        ]);
    };
    (tokens, $make:path) => {
        $crate::contract_group!(tokens, $make, [
            repeated_token_does_nothing,
            repeated_token_skips_conditions,
            token_identifies_one_transaction,
            token_applies_among_submitted_transactions,
        ]);
    };
    (transactions, $make:path) => {
        $crate::contract_group!(transactions, $make, [
            transaction_runs_every_kind_of_action,
            one_failed_condition_writes_nothing,
            cancel_reasons_follow_action_order,
            failing_action_cancels_the_transaction,
            condition_sees_previous_transaction,
            two_actions_on_one_item_are_rejected,
            transaction_accepts_1_to_100_actions,
            transaction_over_4_mib_is_rejected,
            transactions_submitted_together_have_separate_outcomes,
            many_transactions_can_be_submitted_together,
            transact_get_keeps_the_request_order,
            transact_get_accepts_1_to_100_items,
        ]);
    };
    (updates, $make:path) => {
        $crate::contract_group!(updates, $make, [
            update_creates_a_missing_item,
            remove_only_update_creates_no_item,
            set_writes_attributes_and_keeps_the_others,
            set_writes_nested_values,
            set_reads_the_original_item,
            if_not_exists_provides_initial_value,
            list_append_concatenates_lists,
            remove_deletes_attributes_members_and_elements,
            add_is_exact,
            add_and_delete_change_set_members,
            all_update_actions_work_together,
            updates_that_do_not_fit_are_rejected,
            updates_of_key_attributes_are_rejected,
            overlapping_paths_are_rejected,
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
