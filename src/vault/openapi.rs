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

/// Returns the OpenAPI 3.1 document of all operations.
#[must_use]
pub fn document() -> OpenApi {
    let mut document = Document::default();
    document.add::<AnswersRequest>();
    document.add::<AuditRequest>();
    document.add::<CapturesRequest>();
    document.add::<CheckJournalRequest>();
    document.add::<DaysRequest>();
    document.add::<DiffRequest>();
    document.add::<DigestsRequest>();
    document.add::<FindRequest>();
    document.add::<ForksOfRequest>();
    document.add::<ForksRequest>();
    document.add::<JournalHeadRequest>();
    document.add::<JournalRequest>();
    document.add::<LabelKeysRequest>();
    document.add::<LabelValuesRequest>();
    document.add::<LabelsRequest>();
    document.add::<LinksRequest>();
    document.add::<ListRequest>();
    document.add::<NoteRequest>();
    document.add::<PathRequest>();
    document.add::<PinsRequest>();
    document.add::<ReclaimableRequest>();
    document.add::<RecordingsRequest>();
    document.add::<ReplayRequest>();
    document.add::<ResolveRequest>();
    document.add::<ResponsesRequest>();
    document.add::<RulesRequest>();
    document.add::<SearchRequest>();
    document.add::<ShowRequest>();
    document.add::<StatsRequest>();
    document.add::<TagsRequest>();
    document.add::<TombstonesRequest>();
    document.add::<UnresolvedRequest>();
    document.add::<VerifyRequest>();
    document.add::<BackupRequest>();
    document.add::<CopyRequest>();
    document.add::<ForgetRequest>();
    document.add::<ReclaimRequest>();
    document.add::<RemoveRequest>();
    document.add::<ViewRequest>();
    document.add::<SetTagRequest>();
    document.add::<RemoveTagRequest>();
    document.add::<SetNoteRequest>();
    document.add::<RemoveNoteRequest>();
    document.add::<PinRequest>();
    document.add::<UnpinRequest>();
    document.add::<SetLabelsRequest>();
    document.add::<RemoveLabelsRequest>();
    document.add::<AddLinkRequest>();
    document.add::<RemoveLinkRequest>();
    document.build()
}

#[derive(Default)]
struct Document {
    paths: Vec<(&'static str, PathItem)>,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl Document {
    fn add<O: Operation>(&mut self) {
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
