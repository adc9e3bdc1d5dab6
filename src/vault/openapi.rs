//! The OpenAPI document.

use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref, RefOr,
    Required, ResponseBuilder, ResponsesBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use super::api::Operation;
use crate::vault::add::AddedDocument;
use crate::vault::annotate::{
    AddLinkRequest, PinRequest, RemoveLabelsRequest, RemoveLinkRequest, RemoveNoteRequest, RemoveTagRequest,
    SetLabelsRequest, SetNoteRequest, SetTagRequest, UnpinRequest,
};
use crate::vault::answers::AnswersRequest;
use crate::vault::audit::AuditRequest;
use crate::vault::backup::BackupRequest;
use crate::vault::captures::CapturesRequest;
use crate::vault::copy::CopyRequest;
use crate::vault::days::DaysRequest;
use crate::vault::diff::DiffRequest;
use crate::vault::digests::DigestsRequest;
use crate::vault::find::FindRequest;
use crate::vault::forget::ForgetRequest;
use crate::vault::forks::ForksRequest;
use crate::vault::forks_of::ForksOfRequest;
use crate::vault::journal::{JournalHeadRequest, JournalRequest};
use crate::vault::journal_check::CheckJournalRequest;
use crate::vault::labels::{LabelKeysRequest, LabelValuesRequest, LabelsRequest};
use crate::vault::links::LinksRequest;
use crate::vault::list::ListRequest;
use crate::vault::note::NoteRequest;
use crate::vault::path::PathRequest;
use crate::vault::pins::PinsRequest;
use crate::vault::reclaim::{ReclaimRequest, ReclaimableRequest};
use crate::vault::recordings::RecordingsRequest;
use crate::vault::remove::RemoveRequest;
use crate::vault::replay::{ReplayRequest, ResponsesRequest};
use crate::vault::resolve::ResolveRequest;
use crate::vault::rules::RulesRequest;
use crate::vault::search::SearchRequest;
use crate::vault::show::ShowRequest;
use crate::vault::stats::StatsRequest;
use crate::vault::tags::TagsRequest;
use crate::vault::tombstones::TombstonesRequest;
use crate::vault::unresolved::UnresolvedRequest;
use crate::vault::verify::VerifyRequest;
use crate::vault::view::ViewRequest;

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
    visitor.visit::<AnswersRequest>();
    visitor.visit::<AuditRequest>();
    visitor.visit::<CapturesRequest>();
    visitor.visit::<CheckJournalRequest>();
    visitor.visit::<DaysRequest>();
    visitor.visit::<DiffRequest>();
    visitor.visit::<DigestsRequest>();
    visitor.visit::<FindRequest>();
    visitor.visit::<ForksOfRequest>();
    visitor.visit::<ForksRequest>();
    visitor.visit::<JournalHeadRequest>();
    visitor.visit::<JournalRequest>();
    visitor.visit::<LabelKeysRequest>();
    visitor.visit::<LabelValuesRequest>();
    visitor.visit::<LabelsRequest>();
    visitor.visit::<LinksRequest>();
    visitor.visit::<ListRequest>();
    visitor.visit::<NoteRequest>();
    visitor.visit::<PathRequest>();
    visitor.visit::<PinsRequest>();
    visitor.visit::<ReclaimableRequest>();
    visitor.visit::<RecordingsRequest>();
    visitor.visit::<ReplayRequest>();
    visitor.visit::<ResolveRequest>();
    visitor.visit::<ResponsesRequest>();
    visitor.visit::<RulesRequest>();
    visitor.visit::<SearchRequest>();
    visitor.visit::<ShowRequest>();
    visitor.visit::<StatsRequest>();
    visitor.visit::<TagsRequest>();
    visitor.visit::<TombstonesRequest>();
    visitor.visit::<UnresolvedRequest>();
    visitor.visit::<VerifyRequest>();
    visitor.visit::<BackupRequest>();
    visitor.visit::<CopyRequest>();
    visitor.visit::<ForgetRequest>();
    visitor.visit::<ReclaimRequest>();
    visitor.visit::<RemoveRequest>();
    visitor.visit::<ViewRequest>();
    visitor.visit::<SetTagRequest>();
    visitor.visit::<RemoveTagRequest>();
    visitor.visit::<SetNoteRequest>();
    visitor.visit::<RemoveNoteRequest>();
    visitor.visit::<PinRequest>();
    visitor.visit::<UnpinRequest>();
    visitor.visit::<SetLabelsRequest>();
    visitor.visit::<RemoveLabelsRequest>();
    visitor.visit::<AddLinkRequest>();
    visitor.visit::<RemoveLinkRequest>();
}

/// Returns the OpenAPI 3.1 document of all operations.
#[must_use]
pub fn document() -> OpenApi {
    let mut document = Document::default();
    visit_operations(&mut document);
    // Adding has no request: its input are files.
    document.schema::<AddedDocument>();
    document.build()
}

#[derive(Default)]
struct Document {
    paths: Vec<(&'static str, PathItem)>,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl OperationVisitor for Document {
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

impl Document {
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
