//! The tests that every engine passes, each written once.
//!
//! [`suite!`] instantiates all of them for an engine. An engine brings a function that returns an empty [`TestVault`].

mod adoption;
mod annotations;
mod finding;
mod journal;
mod kinds;
mod mentions;
#[cfg(feature = "postgres")]
pub(super) mod postgres;
mod reading;
mod references;
mod removing;
mod searching;
mod statistics;
mod storing;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::interface::{
    Annotation, ArtifactRecord, Filter, Order, Page, PutOptions, Snapshot, Storage, Transaction,
};
use super::memory::MemoryStorage;
use super::{
    Actor, BUSY_TIMEOUT, CreationPolicy, Prepared, PutOutcome, PutResult, RemovedPolicy, Result, Store,
};
use crate::artifact::Admitted;
use crate::digest::{CoreHash, Digest};
use kinds::TestDocument;

/// An empty vault of an engine, with what is removed when it is dropped.
pub(super) struct TestVault {
    storage: Box<dyn Storage>,
    _cleanup: Option<Box<dyn std::any::Any>>,
}

/// The time at which the tests begin.
fn start() -> DateTime<Utc> {
    "2026-03-01T12:00:00.123Z".parse().unwrap()
}

/// The time this many seconds after the start.
fn second(seconds: i64) -> DateTime<Utc> {
    start() + TimeDelta::seconds(seconds)
}

/// Returns the digest of a text, for mentions.
fn digest(text: &str) -> Digest {
    Digest::from_content(text.as_bytes())
}

/// Returns a digest that no test stores or mentions.
fn unknown() -> CoreHash {
    CoreHash(digest("nothing has this hash"))
}

impl TestVault {
    fn snapshot(&self) -> Box<dyn Snapshot + '_> {
        self.storage.snapshot().unwrap()
    }

    fn prepared(&self, admitted: Admitted) -> Prepared {
        self.storage.preparer().unwrap().prepare(admitted)
    }

    /// Stores a batch with a policy.
    fn put(&self, batch: Vec<Admitted>, policy: RemovedPolicy, at: DateTime<Utc>) -> Result<Vec<PutResult>> {
        let batch: Vec<Prepared> = batch.into_iter().map(|admitted| self.prepared(admitted)).collect();
        let options = PutOptions { policy, at, busy_timeout: Duration::from_mins(1) };
        self.storage.put(&batch.iter().collect::<Vec<_>>(), &options)
    }

    /// Stores a batch at the start.
    fn add_all(&self, batch: Vec<Admitted>) -> Vec<PutOutcome> {
        let put = self.put(batch, RemovedPolicy::Refuse, start()).unwrap();
        put.into_iter().map(|put| put.outcome).collect()
    }

    /// Stores an artifact at a time.
    fn add_at(&self, admitted: Admitted, at: DateTime<Utc>) -> PutOutcome {
        self.put(vec![admitted], RemovedPolicy::Refuse, at).unwrap().remove(0).outcome
    }

    /// Stores an artifact at the start, and returns its core hash.
    fn add(&self, admitted: Admitted) -> CoreHash {
        let core = admitted.core();
        self.add_at(admitted, start());
        core
    }

    /// Stores a note at the start, and returns its core hash.
    fn add_note(&self, document: &TestDocument) -> CoreHash {
        self.add(document.admit(kinds::note()))
    }

    fn transaction(&self) -> Box<dyn Transaction + '_> {
        self.storage.transaction(start(), BUSY_TIMEOUT).unwrap()
    }

    /// Makes one change of annotations at the start.
    fn annotate(&self, change: &Annotation<'_>) -> Result<bool> {
        self.annotate_at(change, start())
    }

    fn annotate_at(&self, change: &Annotation<'_>, at: DateTime<Utc>) -> Result<bool> {
        let mut transaction = self.storage.transaction(at, BUSY_TIMEOUT)?;
        let changed = transaction.annotate(change)?;
        transaction.commit()?;
        Ok(changed)
    }

    fn remove_at(&self, core: CoreHash, reason: Option<&str>, at: DateTime<Utc>) -> Result<()> {
        let mut transaction = self.storage.transaction(at, BUSY_TIMEOUT)?;
        while !transaction.prepare_removal(&[core])? {
            transaction.commit()?;
            transaction = self.storage.transaction(at, BUSY_TIMEOUT)?;
        }
        transaction.remove(core, reason)?;
        transaction.commit().map(drop)
    }

    fn remove(&self, core: CoreHash) {
        self.remove_at(core, None, start()).unwrap();
    }

    fn record(&self, core: CoreHash) -> Option<ArtifactRecord> {
        self.snapshot().artifacts(&[core]).unwrap().remove(0)
    }

    /// Returns the core hashes of all artifacts that match, in an order.
    fn found(&self, filter: &Filter, order: Order) -> Vec<CoreHash> {
        let found = self.snapshot().find(filter, order, &Page::all()).unwrap();
        assert_eq!(found.next, None, "all are on one page");
        found.items.into_iter().map(|hit| hit.artifact.core).collect()
    }

    /// Returns the actions of the journal's entries.
    fn actions(&self) -> Vec<String> {
        let entries = self.snapshot().journal(&super::JournalQuery::default(), 0, usize::MAX).unwrap();
        let action = |text: &str| -> String {
            let entry: serde_json::Value = serde_json::from_str(text).unwrap();
            entry["action"].as_str().unwrap().to_owned()
        };
        entries.iter().map(|entry| action(&entry.entry)).collect()
    }
}

/// Instantiates every test for an engine.
macro_rules! suite {
    ($engine:ident, $make:path, { $($area:ident: $($test:ident)+;)+ }) => {
        mod $engine {
            $(mod $area {
                $(#[test]
                fn $test() {
                    // An engine that needs a server is skipped if there is none.
                    if let Some(vault) = Option::from($make()) {
                        super::super::$area::$test(&vault);
                    }
                })+
            })+
        }
    };
    ($engine:ident, $make:path) => {
        suite!($engine, $make, {
            storing: every_outcome_is_reported_in_the_order_of_the_batch
                an_empty_batch_changes_nothing
                an_artifact_is_stored_with_everything_that_belongs_to_it
                a_further_capture_adds_to_the_index_data
                a_capture_that_is_seen_again_changes_only_times_and_order
                the_same_bytes_can_be_two_artifacts
                embedded_artifacts_are_stored_before_their_container
                artifacts_prepared_by_another_engine_are_rejected
                a_refused_artifact_is_not_stored_and_the_others_are
                a_refusal_can_stop_the_batch
                a_removal_can_be_taken_back
                a_container_of_something_removed_is_refused
                a_container_of_another_form_of_something_removed_is_refused
                a_core_hash_is_of_one_kind
                times_never_go_back
                a_signature_that_is_checked_again_is_recorded_if_it_changed
                each_capture_has_the_path_of_its_first_addition
                paths_are_in_the_entries_of_additions
                embedded_artifacts_have_paths_too
                what_is_added_after_its_removal_has_the_path_of_that;
            reading: unknown_hashes_have_empty_answers
                no_keys_have_no_answers
                answers_are_in_the_order_of_the_keys
                members_and_bytes_are_returned_as_stored
                a_capture_is_its_blob
                a_manifest_is_no_file
                what_a_capture_does_not_have_is_an_error
                warnings_and_signatures_are_returned
                the_preferred_capture_depends_on_the_signatures
                files_are_found_in_the_capture_that_was_added_first
                shared_files_are_listed_with_the_artifacts_that_stay
                attribute_names_and_values_are_sorted_and_limited
                pages_are_the_whole
                pages_stay_complete_when_items_are_removed
                the_last_page_has_no_next
                a_limit_of_zero_returns_nothing
                prefixes_resolve_to_artifacts_captures_and_tombstones
                resolution_is_limited
                snapshots_do_not_see_later_changes
                transactions_see_their_own_changes
                dropped_transactions_change_nothing
                writers_wait_for_each_other;
            finding: an_empty_filter_matches_everything
                every_condition_selects_its_artifacts
                all_conditions_must_hold
                matches_are_in_the_order_of_conditions_artifacts_roles_and_places
                members_match_for_their_containers
                periods_include_their_beginning_and_exclude_their_end
                digits_select_by_core_hash
                notes_are_compared_without_case
                orders_are_total
                artifacts_are_found_by_the_time_of_their_end
                attributes_are_ordered_and_compared_by_number
                pages_of_many_artifacts_are_parts_of_all
                artifacts_can_be_selected_by_core_hash
                matching_artifacts_are_counted_by_day
                matching_artifacts_are_counted_by_value;
            mentions: mentions_are_ordered_and_grouped
                mentions_of_several_captures_are_counted_once
                artifacts_that_mention_a_digest_are_found
                kinds_are_found_by_the_groups_of_their_mentions
                mentioned_digests_are_found_by_prefix
                shared_first_mentions_are_those_of_several_artifacts
                a_neighborhood_is_what_its_parts_are
                sharers_are_those_of_both_digests;
            references: references_are_listed_from_both_ends
                references_lead_to_captures
                references_to_what_is_missing_are_reported
                missing_artifacts_are_listed_by_pages
                references_are_unresolved_exactly_while_their_artifact_is_missing
                references_within_a_batch_and_a_transaction_are_resolved
                containers_are_found_by_statement_and_by_bytes
                related_artifacts_share_an_attribute
                names_are_listed_with_their_users
                shared_names_are_those_of_several_originals
                namesakes_are_of_the_same_kind
                what_has_names_in_common_or_is_contained_is_not_alone;
            annotations: labels_are_set_replaced_and_removed
                labels_of_many_artifacts_are_recorded_together
                invalid_labels_are_rejected
                labels_of_missing_artifacts_are_rejected
                labels_are_removed_with_their_artifact
                labels_select_artifacts
                keys_and_values_are_listed_with_their_use
                tags_are_unique_and_move
                notes_and_pins_are_replaced
                manual_links_are_listed_from_both_ends
                what_is_already_so_is_not_recorded
                invalid_annotations_are_rejected
                annotations_of_missing_artifacts_are_rejected
                tagged_artifacts_are_found;
            removing: everything_of_an_artifact_is_removed
                pinned_artifacts_are_not_removed
                removals_are_recorded_in_a_fixed_order
                tombstones_are_listed_in_the_order_of_removal
                tombstones_are_found_for_what_is_added_again
                bytes_that_others_have_remain
                a_removed_artifact_cannot_be_removed_again;
            journal: entries_are_chained
                entries_are_the_same_for_every_engine
                entries_are_selected
                the_chain_is_checked
                many_captures_seen_again_are_recorded_in_several_entries;
            adoption: a_journal_is_adopted_with_everything_that_follows
                a_capture_that_was_lost_and_added_again_is_there_once
                an_adoption_can_be_continued_in_any_steps
                what_was_removed_meanwhile_is_removed
                only_an_empty_vault_adopts_a_journal
                an_incomplete_copy_refuses_writers
                entries_must_continue_the_journal
                entries_with_unknown_actions_are_kept
                artifacts_must_be_those_of_their_entries;
            statistics: an_empty_vault_has_no_statistics
                everything_is_counted_once
                the_time_determines_oldest_newest_and_days
                a_manifest_is_counted_as_a_blob
                removed_artifacts_are_not_counted
                what_an_engine_cannot_do_is_unsupported
                nothing_is_left_to_reclaim_after_reclaiming;
            searching: there_is_no_index_until_one_is_built
                captures_are_indexed_in_the_order_of_addition
                documented_queries_match
                any_text_matches_as_the_tokenizer_says
                long_texts_match_as_the_tokenizer_says
                hits_can_be_grouped_restricted_and_limited
                removed_artifacts_are_removed_from_the_index
                what_was_removed_while_it_was_read_is_not_indexed
                differences_between_index_and_passages_are_found;
        });
    };
}

/// Returns an empty vault in memory.
fn memory() -> TestVault {
    let storage = acting(MemoryStorage::new());
    TestVault { storage: Box::new(storage), _cleanup: None }
}

/// Returns an engine whose changes are those of the tester.
fn acting<S: Storage>(mut storage: S) -> S {
    storage.set_actor(actor());
    storage
}

fn actor() -> Actor {
    Actor::new("tester").unwrap()
}

/// Returns an empty vault in a new file.
fn file() -> TestVault {
    let directory = tempfile::tempdir().unwrap();
    let storage = acting(Store::open(&directory.path().join("v.vault"), CreationPolicy::IfMissing).unwrap());
    TestVault { storage: Box::new(storage), _cleanup: Some(Box::new(directory)) }
}

suite!(in_memory, super::super::memory);
suite!(sqlite, super::super::file);
#[cfg(feature = "postgres")]
suite!(in_postgres, super::super::postgres::vault);
#[cfg(feature = "objects")]
suite!(in_postgres_with_directory, super::super::postgres::vault_with_directory);
#[cfg(feature = "objects")]
suite!(in_postgres_with_bucket, super::super::postgres::vault_with_bucket);
