//! Uploads in parts to S3 that were not completed.
//!
//! A program that is killed within an upload leaves its parts. They are in no listing of objects, cost money, and stay until
//! the upload is aborted. Google Cloud Storage uploads by the same interface and Azure drops parts after a week by
//! itself; both are left to the rules of their buckets.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use object_store::aws::AmazonS3;
use object_store::client::{
    HttpClient, HttpConnector as _, HttpError, HttpRequest, HttpRequestBody, ReqwestConnector,
};
use object_store::multipart::MultipartStore as _;
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer as _};
use object_store::{ClientOptions, Error};
use reqwest::Method;

/// How long the address of a request is valid.
const VALIDITY: Duration = Duration::from_mins(5);

/// A client that lists and aborts uploads.
pub(super) struct MultipartUploadClient {
    store: Arc<AmazonS3>,
    http: HttpClient,
}

/// An upload that was not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upload {
    pub(super) key: String,
    id: String,
    /// When it was begun, by the clock of the storage.
    pub(super) begun: DateTime<Utc>,
}

/// A part of the list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UploadPage {
    pub(super) uploads: Vec<Upload>,
    /// The position that the next part begins after, if there is one.
    pub(super) next: Option<[String; 2]>,
}

impl MultipartUploadClient {
    pub(super) fn new(store: Arc<AmazonS3>) -> object_store::Result<Self> {
        // Whether that is allowed was decided when the store was created.
        let options = ClientOptions::new().with_allow_http(true);
        Ok(Self { store, http: ReqwestConnector::default().connect(&options)? })
    }

    /// Returns uploads of objects whose keys begin with `prefix`. A server that does not list them, or does not permit it,
    /// has none.
    pub(super) async fn list(
        &self,
        prefix: &str,
        after: Option<&[String; 2]>,
    ) -> object_store::Result<UploadPage> {
        let mut query = vec![("uploads", ""), ("prefix", prefix)];
        if let Some([key, id]) = after {
            query.extend([("key-marker", key.as_str()), ("upload-id-marker", id.as_str())]);
        }
        let options = SignedUrlOptions::new().with_query(query);
        let url = self.store.signed_url_opts(Method::GET, &Path::default(), VALIDITY, &options).await?;
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = url.as_str().parse().map_err(generic)?;
        let answer = self.http.execute(request).await.map_err(|error: HttpError| generic(error))?;
        let status = answer.status().as_u16();
        if (400..500).contains(&status) || status == 501 {
            return Ok(UploadPage::default());
        }
        if status != 200 {
            return Err(generic(format!("status code: {status}")));
        }
        let bytes = answer.into_body().bytes().await.map_err(generic)?;
        Ok(page(&String::from_utf8_lossy(&bytes)))
    }

    /// Aborts an upload. That there is none is no error.
    pub(super) async fn abort(&self, upload: &Upload) -> object_store::Result<()> {
        match self.store.abort_multipart(&Path::parse(&upload.key)?, &upload.id).await {
            Err(Error::NotFound { .. }) => Ok(()),
            aborted => aborted,
        }
    }
}

fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: "S3", source: source.into() }
}

/// Reads an answer. What is not as expected in it is not listed.
fn page(text: &str) -> UploadPage {
    let upload = |part: &str| {
        let begun = DateTime::parse_from_rfc3339(&element(part, "Initiated")?).ok()?.to_utc();
        Some(Upload { key: element(part, "Key")?, id: element(part, "UploadId")?, begun })
    };
    let next = || Some([element(text, "NextKeyMarker")?, element(text, "NextUploadIdMarker")?]);
    let is_truncated = element(text, "IsTruncated").is_some_and(|text| text == "true");
    UploadPage {
        uploads: text.split("<Upload>").skip(1).filter_map(upload).collect(),
        next: if is_truncated { next() } else { None },
    }
}

/// Returns the text of the first element with this name.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    // Our names have none of the other escaped characters, and the ids of some servers may.
    let value =
        value.replace("&quot;", "\"").replace("&apos;", "'").replace("&lt;", "<").replace("&gt;", ">");
    Some(value.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let text = "<?xml version=\"1.0\"?><ListMultipartUploadsResult><KeyMarker></KeyMarker><IsTruncated>true</IsTruncated>
            <NextKeyMarker>a/blobs/x</NextKeyMarker><NextUploadIdMarker>2</NextUploadIdMarker>
            <Upload><Initiated>2026-03-01T12:00:00Z</Initiated><Key>a/blobs/x</Key><UploadId>1&amp;2</UploadId></Upload>
            <Upload><Key>a/blobs/y</Key><UploadId>2</UploadId><Initiated>2026-03-01T12:00:00.500Z</Initiated></Upload>
            <Upload><Key>no time</Key><UploadId>3</UploadId></Upload></ListMultipartUploadsResult>";
        let UploadPage { uploads, next } = page(text);
        let found: Vec<_> = uploads.iter().map(|upload| (upload.key.as_str(), upload.id.as_str())).collect();
        assert_eq!(found, [("a/blobs/x", "1&2"), ("a/blobs/y", "2")]);
        assert_eq!(uploads[0].begun.to_rfc3339(), "2026-03-01T12:00:00+00:00");
        assert_eq!(next, Some(["a/blobs/x".to_owned(), "2".to_owned()]));
        assert_eq!(page(&text.replace("true", "false")).next, None);
        assert_eq!(page("<Error>"), UploadPage::default());
    }
}
