//! The OpenAPI document.

use std::convert::Infallible;

use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref, RefOr,
    Required, ResponseBuilder, ResponsesBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use super::add::{AddedDocument, CheckedDocument};
use super::api::{FindingSummary, Operation};
use super::bundle::{ImportedLabelSummary, ImportedLinkSummary, ImportedNoteSummary, ImportedTagSummary};
use super::copy::CopyError;
use super::fsck::RepairSummary;
use super::links::FoundLink;
use super::remove::RemoveError;
use super::replay::ReplayError;
use super::resolve::LookupError;
use super::rules::ImportedValue;
use super::search::SearchError;
use super::sql::{SqlSaveAnswer, SqlViewSummary};
use super::{
    Vault, annotate, annotations, answers, audit, backup, copy, details, diff, facets, find, forget, forks,
    journal, links, list, maintenance, near, path, recordings, remove, replay, resolve, rules, run_stats,
    search, show, stats, tombstones, unfinished, unresolved, verify, view, wire,
};
use crate::storage::{BackupError, Head, ReclaimResult, StorageError};

/// A visitor of the types of all operations.
pub trait OperationVisitor {
    /// Called once for each operation.
    fn visit<O: Operation>(&mut self);
}

/// Implements [`Operation`] for the requests of a table: the name of the operation, whether it changes the vault, its
/// summary, and its request, answer and error. Each request runs by its own method `run`.
macro_rules! operations {
    ($($name:literal $($changes:ident)?: $summary:literal $request:ty => $answer:ty, $error:ty;)+) => {
        $(impl Operation for $request {
            type Answer = $answer;
            type Error = $error;

            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            const CHANGES: bool = operations!(@changes $($changes)?);

            fn run(&self, vault: &Vault) -> Result<$answer, $error> {
                self.run(vault)
            }
        })+

        /// Passes the type of every operation to `visitor`.
        ///
        /// ```
        /// use runvault::vault::api::{Operation, OperationVisitor, visit_operations};
        ///
        /// #[derive(Default)]
        /// struct Names(Vec<&'static str>);
        ///
        /// impl OperationVisitor for Names {
        ///     fn visit<O: Operation>(&mut self) {
        ///         self.0.push(O::NAME);
        ///     }
        /// }
        ///
        /// let mut names = Names::default();
        /// visit_operations(&mut names);
        /// assert!(names.0.contains(&"find"));
        /// ```
        pub fn visit_operations(visitor: &mut impl OperationVisitor) {
            $(visitor.visit::<$request>();)+
        }
    };
    (@changes) => { false };
    (@changes changes) => { true };
}

operations! {
    "answers": "Compare the answers to the same prompts"
        answers::AnswersRequest => answers::AnswersAnswer, LookupError;
    "attribute-names": "List the names of the attributes that artifacts have"
        details::AttributeNamesRequest => details::AttributeNamesAnswer, StorageError;
    "attribute-values": "List the values of an attribute"
        details::AttributeValuesRequest => details::AttributeValuesAnswer, StorageError;
    "audit": "Audit runs against a contract"
        audit::AuditRequest => audit::AuditAnswer, LookupError;
    "captures": "List the captures of an artifact"
        details::CapturesRequest => details::CapturesAnswer, StorageError;
    "check-journal": "Check the journal, and compare the catalog with it"
        journal::CheckJournalRequest => journal::CheckJournalAnswer, StorageError;
    "days": "Count artifacts by day"
        stats::DaysRequest => stats::DaysAnswer, StorageError;
    "diff": "Compare two artifacts and show where they diverge"
        diff::DiffRequest => diff::DiffAnswer, LookupError;
    "digests": "Resolve the first digits of a digest that artifacts mention"
        resolve::DigestsRequest => resolve::DigestsAnswer, StorageError;
    "facets": "Count runs by the most frequent values of attributes and labels"
        facets::FacetsRequest => facets::FacetsAnswer, StorageError;
    "find": "Find artifacts by kind, mention, attribute, signature, note, tag or time"
        find::FindRequest => find::FindAnswer, StorageError;
    "forks-of": "List the forks of some artifacts"
        forks::ForksOfRequest => forks::ForksOfAnswer, StorageError;
    "forks": "List traces and run packs of one run that diverge"
        forks::ForksRequest => forks::ForksAnswer, LookupError;
    "journal-head": "Show the last journal entry"
        journal::JournalHeadRequest => Head, StorageError;
    "journal": "List journal entries"
        journal::JournalRequest => journal::JournalAnswer, StorageError;
    "label-keys": "List the keys of labels"
        annotations::LabelKeysRequest => annotations::LabelKeysAnswer, StorageError;
    "label-values": "List the values of a key of labels"
        annotations::LabelValuesRequest => annotations::LabelValuesAnswer, StorageError;
    "labels": "List the labels of an artifact"
        annotations::LabelsRequest => annotations::LabelsAnswer, StorageError;
    "links": "List the links of an artifact"
        links::LinksRequest => links::LinksAnswer, StorageError;
    "list": "List runs and other artifacts with their measurements"
        list::ListRequest => list::ListAnswer, StorageError;
    "near": "Find what is similar to conditions that no artifact matches"
        near::NearRequest => near::NearAnswer, StorageError;
    "note": "Show the note of an artifact"
        annotations::NoteRequest => annotations::NoteAnswer, StorageError;
    "path": "Find the shortest path of links between two artifacts"
        path::PathRequest => path::PathAnswer, StorageError;
    "pins": "List pinned artifacts"
        annotations::PinsRequest => annotations::PinsAnswer, StorageError;
    "reclaimable": "Show what reclaiming disk space would remove"
        maintenance::ReclaimableRequest => maintenance::ReclaimableAnswer, StorageError;
    "recordings": "List the recordings in which a prompt can be looked up"
        recordings::RecordingsRequest => recordings::RecordingsAnswer, StorageError;
    "replay": "Look up the recorded response to a prompt"
        replay::ReplayRequest => replay::ReplayAnswer, ReplayError;
    "resolve": "Resolve a hash, a prefix, a tag or a run id"
        resolve::ResolveRequest => resolve::ResolveAnswer, StorageError;
    "responses": "List the recorded responses of a session or a run"
        replay::ResponsesRequest => replay::ResponsesAnswer, LookupError;
    "rules": "List or explain validation rules"
        rules::RulesRequest => rules::RulesAnswer, Infallible;
    "run-stats": "Count runs, failures, tokens, latency and costs by model, tool, agent, label or day"
        run_stats::RunStatsRequest => run_stats::RunStatsAnswer, StorageError;
    "search": "Search the text of artifacts"
        search::SearchRequest => search::SearchAnswer, SearchError;
    "search-index": "Return the state of the search index"
        search::SearchIndexRequest => search::SearchIndexAnswer, StorageError;
    "build-search-index": "Build the search index, or rebuild it"
        search::BuildSearchIndexRequest => search::BuildSearchIndexAnswer, StorageError;
    "drop-search-index": "Remove the search index"
        search::DropSearchIndexRequest => search::DropSearchIndexAnswer, StorageError;
    "show": "Describe an artifact"
        show::ShowRequest => show::ShowAnswer, StorageError;
    "stats": "Show counts, disk usage and growth"
        stats::StatsRequest => stats::StatsAnswer, StorageError;
    "tags": "List tags"
        annotations::TagsRequest => annotations::TagsAnswer, StorageError;
    "tombstones": "List removed artifacts"
        tombstones::TombstonesRequest => tombstones::TombstonesAnswer, StorageError;
    "unfinished-conversation": "Read the calls so far of a run that is being recorded"
        unfinished::UnfinishedConversationRequest => unfinished::UnfinishedConversationAnswer, StorageError;
    "unfinished-runs": "List the runs that are being recorded"
        unfinished::UnfinishedRunsRequest => unfinished::UnfinishedRunsAnswer, StorageError;
    "unresolved": "List references to missing artifacts"
        unresolved::UnresolvedRequest => unresolved::UnresolvedAnswer, StorageError;
    "verify": "Verify stored artifacts"
        verify::VerifyRequest => verify::VerifyAnswer, LookupError;
    "backup": "Copy the vault to another file and check the copy"
        backup::BackupRequest => backup::BackupAnswer, BackupError;
    "copy": "Copy everything in the vault into another one"
        copy::CopyRequest => copy::CopyAnswer, CopyError;
    "forget" changes: "Apply a retention policy"
        forget::ForgetRequest => forget::ForgetAnswer, RemoveError;
    "reclaim" changes: "Reclaim disk space"
        maintenance::ReclaimRequest => ReclaimResult, StorageError;
    "remove" changes: "Remove artifacts"
        remove::RemoveRequest => remove::RemoveAnswer, RemoveError;
    "view": "Read an artifact as a transcript"
        view::ViewRequest => view::ViewAnswer, LookupError;
    "wire-audit": "Compare the session of an agent with the recorded calls of models"
        wire::WireAuditRequest => wire::WireAuditAnswer, LookupError;
    "set-tag" changes: "Set a tag on an artifact"
        annotate::SetTagRequest => annotate::SetTagAnswer, StorageError;
    "remove-tag" changes: "Remove a tag"
        annotate::RemoveTagRequest => annotate::AnnotateAnswer, StorageError;
    "set-note" changes: "Set an artifact's note"
        annotate::SetNoteRequest => annotate::AnnotateAnswer, StorageError;
    "remove-note" changes: "Remove an artifact's note"
        annotate::RemoveNoteRequest => annotate::AnnotateAnswer, StorageError;
    "pin" changes: "Protect an artifact from removal"
        annotate::PinRequest => annotate::AnnotateAnswer, StorageError;
    "unpin" changes: "Unpin an artifact"
        annotate::UnpinRequest => annotate::AnnotateAnswer, StorageError;
    "set-labels" changes: "Set labels on artifacts"
        annotate::SetLabelsRequest => annotate::AnnotateAnswer, StorageError;
    "remove-labels" changes: "Remove labels from artifacts"
        annotate::RemoveLabelsRequest => annotate::AnnotateAnswer, StorageError;
    "add-link" changes: "Add a link between two artifacts manually"
        annotate::AddLinkRequest => annotate::AnnotateAnswer, StorageError;
    "remove-link" changes: "Remove a manually added link"
        annotate::RemoveLinkRequest => annotate::AnnotateAnswer, StorageError;
}

/// Returns the OpenAPI 3.1 document of all operations.
#[must_use]
pub fn document() -> OpenApi {
    let mut document = OpenApiCollector::default();
    visit_operations(&mut document);
    // What is printed where input or output are files or streams, and links one by one.
    document.schema::<AddedDocument>();
    document.schema::<CheckedDocument>();
    document.schema::<FindingSummary>();
    document.schema::<RepairSummary>();
    document.schema::<FoundLink>();
    document.schema::<ImportedLinkSummary>();
    document.schema::<ImportedTagSummary>();
    document.schema::<ImportedNoteSummary>();
    document.schema::<ImportedLabelSummary>();
    document.schema::<ImportedValue>();
    document.schema::<SqlViewSummary>();
    document.schema::<SqlSaveAnswer>();
    document.build()
}

#[derive(Default)]
struct OpenApiCollector {
    paths: Vec<(&'static str, PathItem)>,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl OperationVisitor for OpenApiCollector {
    fn visit<O: Operation>(&mut self) {
        let answer = ResponseBuilder::new().description("The answer.").content(
            "application/json",
            ContentBuilder::new().schema(Some(self.schema::<O::Answer>())).build(),
        );
        let request = ContentBuilder::new().schema(Some(self.schema::<O>())).build();
        let operation = OperationBuilder::new()
            .operation_id(Some(O::NAME))
            .summary(Some(O::SUMMARY))
            .request_body(Some(
                RequestBodyBuilder::new()
                    .content("application/json", request)
                    .required(Some(Required::True))
                    .build(),
            ))
            .responses(ResponsesBuilder::new().response("200", answer).build());
        self.paths.push((O::NAME, PathItem::new(HttpMethod::Post, operation)));
    }
}

impl OpenApiCollector {
    /// Adds the schema of a type and of everything in it, and returns a reference to it.
    fn schema<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.schemas.push((T::name().into_owned(), <T as PartialSchema>::schema()));
        T::schemas(&mut self.schemas);
        RefOr::Ref(Ref::from_schema_name(T::name()))
    }

    fn build(self) -> OpenApi {
        let paths = self
            .paths
            .into_iter()
            .fold(PathsBuilder::new(), |paths, (name, item)| paths.path(format!("/api/v1/{name}"), item));
        let info = InfoBuilder::new()
            .title("runvault")
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some("The operations of a vault: the requests and answers of every interface."));
        OpenApiBuilder::new()
            .info(info)
            .paths(paths)
            .components(Some(ComponentsBuilder::new().schemas_from_iter(self.schemas).build()))
            .build()
    }
}
