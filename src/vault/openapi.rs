//! The OpenAPI document.

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
use super::fsck::RepairSummary;
use super::links::FoundLink;
use super::rules::ImportedValue;
use super::sql::{SqlSaveAnswer, SqlViewSummary};

/// A visitor of the types of all operations.
pub trait OperationVisitor {
    /// Called once for each operation.
    fn visit<O: Operation>(&mut self);
}

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
    visitor.visit::<super::answers::AnswersRequest>();
    visitor.visit::<super::details::AttributeNamesRequest>();
    visitor.visit::<super::details::AttributeValuesRequest>();
    visitor.visit::<super::audit::AuditRequest>();
    visitor.visit::<super::details::CapturesRequest>();
    visitor.visit::<super::journal::CheckJournalRequest>();
    visitor.visit::<super::stats::DaysRequest>();
    visitor.visit::<super::diff::DiffRequest>();
    visitor.visit::<super::resolve::DigestsRequest>();
    visitor.visit::<super::facets::FacetsRequest>();
    visitor.visit::<super::find::FindRequest>();
    visitor.visit::<super::forks::ForksOfRequest>();
    visitor.visit::<super::forks::ForksRequest>();
    visitor.visit::<super::journal::JournalHeadRequest>();
    visitor.visit::<super::journal::JournalRequest>();
    visitor.visit::<super::annotations::LabelKeysRequest>();
    visitor.visit::<super::annotations::LabelValuesRequest>();
    visitor.visit::<super::annotations::LabelsRequest>();
    visitor.visit::<super::links::LinksRequest>();
    visitor.visit::<super::list::ListRequest>();
    visitor.visit::<super::near::NearRequest>();
    visitor.visit::<super::annotations::NoteRequest>();
    visitor.visit::<super::path::PathRequest>();
    visitor.visit::<super::annotations::PinsRequest>();
    visitor.visit::<super::maintenance::ReclaimableRequest>();
    visitor.visit::<super::recordings::RecordingsRequest>();
    visitor.visit::<super::replay::ReplayRequest>();
    visitor.visit::<super::resolve::ResolveRequest>();
    visitor.visit::<super::replay::ResponsesRequest>();
    visitor.visit::<super::rules::RulesRequest>();
    visitor.visit::<super::run_stats::RunStatsRequest>();
    visitor.visit::<super::search::SearchRequest>();
    visitor.visit::<super::search::SearchIndexRequest>();
    visitor.visit::<super::search::BuildSearchIndexRequest>();
    visitor.visit::<super::search::DropSearchIndexRequest>();
    visitor.visit::<super::show::ShowRequest>();
    visitor.visit::<super::stats::StatsRequest>();
    visitor.visit::<super::annotations::TagsRequest>();
    visitor.visit::<super::tombstones::TombstonesRequest>();
    visitor.visit::<super::unfinished::UnfinishedConversationRequest>();
    visitor.visit::<super::unfinished::UnfinishedRunsRequest>();
    visitor.visit::<super::unresolved::UnresolvedRequest>();
    visitor.visit::<super::verify::VerifyRequest>();
    visitor.visit::<super::backup::BackupRequest>();
    visitor.visit::<super::copy::CopyRequest>();
    visitor.visit::<super::forget::ForgetRequest>();
    visitor.visit::<super::maintenance::ReclaimRequest>();
    visitor.visit::<super::remove::RemoveRequest>();
    visitor.visit::<super::view::ViewRequest>();
    visitor.visit::<super::wire::WireAuditRequest>();
    visitor.visit::<super::annotate::SetTagRequest>();
    visitor.visit::<super::annotate::RemoveTagRequest>();
    visitor.visit::<super::annotate::SetNoteRequest>();
    visitor.visit::<super::annotate::RemoveNoteRequest>();
    visitor.visit::<super::annotate::PinRequest>();
    visitor.visit::<super::annotate::UnpinRequest>();
    visitor.visit::<super::annotate::SetLabelsRequest>();
    visitor.visit::<super::annotate::RemoveLabelsRequest>();
    visitor.visit::<super::annotate::AddLinkRequest>();
    visitor.visit::<super::annotate::RemoveLinkRequest>();
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
