//! Sessions of opencode: in its database, or, of earlier versions, in files for each message and each part of one. Both
//! become the document that its export writes, byte for byte.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::conversation::events::read_cut_text;
use crate::json::pretty::TruncatedText;
use crate::json::reader::{self, Defect, Limits};
use crate::json::{Number, Object, Value};
use crate::storage::{ForeignDatabase, ForeignRows, ForeignValue, StorageError};

/// The tables with a row for each session, for each message, and for each part of a message.
const TABLES: [&str; 3] = ["session", "message", "part"];

/// The members of a session in its export, with the columns that they are of, and whether these contain JSON.
const INFO: [(&[&str], &str, bool); 29] = [
    (&["id"], "id", false),
    (&["slug"], "slug", false),
    (&["projectID"], "project_id", false),
    (&["workspaceID"], "workspace_id", false),
    (&["directory"], "directory", false),
    (&["path"], "path", false),
    (&["parentID"], "parent_id", false),
    (&["title"], "title", false),
    (&["agent"], "agent", false),
    (&["model"], "model", true),
    (&["version"], "version", false),
    (&["summary", "additions"], "summary_additions", false),
    (&["summary", "deletions"], "summary_deletions", false),
    (&["summary", "files"], "summary_files", false),
    (&["summary", "diffs"], "summary_diffs", true),
    (&["cost"], "cost", false),
    (&["tokens", "input"], "tokens_input", false),
    (&["tokens", "output"], "tokens_output", false),
    (&["tokens", "reasoning"], "tokens_reasoning", false),
    (&["tokens", "cache", "read"], "tokens_cache_read", false),
    (&["tokens", "cache", "write"], "tokens_cache_write", false),
    (&["share", "url"], "share_url", false),
    (&["metadata"], "metadata", true),
    (&["revert"], "revert", true),
    (&["permission"], "permission", true),
    (&["time", "created"], "time_created", false),
    (&["time", "updated"], "time_updated", false),
    (&["time", "compacting"], "time_compacting", false),
    (&["time", "archived"], "time_archived", false),
];

/// Returns the path of the database that a file is, or is the log of, by its name.
pub(super) fn database_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let database = name.strip_suffix("-wal").unwrap_or(name);
    let is_one = database.starts_with("opencode") && database.strip_suffix(".db").is_some();
    is_one.then(|| path.with_file_name(database))
}

/// Returns the ids of the sessions in a database, each with a text that changes when the session does; `None` if it is not
/// a database of opencode.
pub(super) fn sessions(database: &Path) -> Result<Option<BTreeMap<String, String>>, StorageError> {
    let database = ForeignDatabase::open(database)?;
    for table in TABLES {
        if !database.has_table(table)? {
            return Ok(None);
        }
    }
    let [sessions, messages, _] = TABLES;
    let updates = |table, id| {
        database.rows(&ForeignRows {
            table,
            columns: &[id, "time_updated"],
            equal: None,
            order: &["id"],
            limit: u64::MAX,
        })
    };
    let mut stamps = BTreeMap::new();
    for row in updates(sessions, "id")? {
        if let [ForeignValue::Text(id), ForeignValue::Number(updated)] = &row[..] {
            stamps.insert(id.clone(), updated.clone());
        }
    }
    // A session is updated at the end of a turn, and each message while it is written.
    for row in updates(messages, "session_id")? {
        if let [ForeignValue::Text(id), ForeignValue::Number(updated)] = &row[..]
            && let Some(stamp) = stamps.get_mut(id)
        {
            stamp.push(' ');
            stamp.push_str(updated);
        }
    }
    Ok(Some(stamps))
}

/// Returns the document of a session in a database; `None` if it is not there any more.
///
/// # Errors
/// Returns an error if the database cannot be read, and one of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if the
/// session has more bytes than the limit, or another form.
pub(super) fn document(database: &Path, id: &str, limit: u64) -> Result<Option<Vec<u8>>, StorageError> {
    let database = ForeignDatabase::open(database)?;
    let [sessions, messages, parts] = TABLES;
    let columns = INFO.map(|(_, column, _)| column);
    let rows = ForeignRows { table: sessions, columns: &columns, equal: Some(("id", id)), order: &[], limit };
    let Some(session) = database.rows(&rows)?.pop() else { return Ok(None) };
    let rows = |table, columns, order| {
        database.rows(&ForeignRows { table, columns, equal: Some(("session_id", id)), order, limit })
    };
    let messages = rows(messages, &["id", "data"], &["time_created", "id"])?;
    let parts = rows(parts, &["id", "data", "message_id"], &["id"])?;
    let document = export(&session, id, &messages, &parts);
    document
        .map(Some)
        .ok_or_else(|| StorageError::invalid(format!("the session {id} is not in a known form")))
}

fn export(
    session: &[ForeignValue],
    id: &str,
    messages: &[Vec<ForeignValue>],
    parts: &[Vec<ForeignValue>],
) -> Option<Vec<u8>> {
    let members = INFO.iter().zip(session).filter_map(|((path, _, is_json), value)| {
        Some((*path, if *is_json { json(value)? } else { plain(value)? }))
    });
    let info = object(&members.collect::<Vec<_>>());
    let mut of_message: BTreeMap<&str, Vec<Value<'_>>> = BTreeMap::new();
    for row in parts {
        let [ForeignValue::Text(part), data, ForeignValue::Text(message)] = &row[..] else { return None };
        let ids = [("id", &part[..]), ("sessionID", id), ("messageID", message)];
        of_message.entry(message).or_default().push(with_ids(json(data)?, &ids)?);
    }
    let mut elements = Vec::new();
    for row in messages {
        let [ForeignValue::Text(message), data] = &row[..] else { return None };
        let info = with_ids(json(data)?, &[("id", message), ("sessionID", id)])?;
        elements.push(element(info, of_message.remove(&message[..]).unwrap_or_default()));
    }
    Some(text(info, elements))
}

/// Returns the document of a session whose messages and parts are in files, by the path of the file of the session; `None`
/// if it is not such a file.
///
/// # Errors
/// Returns an error if one of the files cannot be read, or is not valid JSON, as while it is written.
pub(super) fn document_of_files(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let Some((storage, id)) = storage_of(path) else { return Ok(None) };
    let mut left = limit;
    let mut read = |path: &Path| {
        let rest = left.checked_sub(fs::metadata(path)?.len());
        left = rest.ok_or_else(|| io::Error::other("the files of the session are larger than allowed"))?;
        let value = read_value(&fs::read(path)?).map(Value::into_owned_value);
        value.ok_or_else(|| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{name}, a file of the session, is not valid JSON"),
            )
        })
    };
    let session = read(path)?;
    let [_, messages, parts] = TABLES;
    let mut elements = Vec::new();
    for message in files_in(&storage.join(messages).join(id))? {
        let files = files_in(&storage.join(parts).join(message.file_stem().unwrap_or_default()))?;
        let parts = files.iter().map(|part| read(part)).collect::<io::Result<Vec<_>>>()?;
        elements.push(element(read(&message)?, parts));
    }
    Ok(Some(text(session, elements)))
}

/// Returns the directory with the files of all sessions, and the id of a session, by the path of its file.
fn storage_of(path: &Path) -> Option<(&Path, &str)> {
    let id = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let sessions = path.parent()?.parent()?;
    let is_one = id.starts_with("ses_") && sessions.file_name().is_some_and(|name| name == TABLES[0]);
    is_one.then(|| Some((sessions.parent()?, id))).flatten()
}

/// Returns the files in a directory, in the order of their names; none if there is no directory.
fn files_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_file() && path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn element<'v>(info: Value<'v>, parts: Vec<Value<'v>>) -> Value<'v> {
    object(&[(&["info"], info), (&["parts"], Value::Array(parts))])
}

fn text<'v>(info: Value<'v>, messages: Vec<Value<'v>>) -> Vec<u8> {
    let document = object(&[(&["info"], info), (&["messages"], Value::Array(messages))]);
    let mut text = TruncatedText::from_value(&document, u64::MAX).text;
    text.push('\n');
    text.into_bytes()
}

/// Returns an object with values at these paths. Those within one member are next to each other.
fn object<'v>(members: &[(&[&'static str], Value<'v>)]) -> Value<'v> {
    let same = |one: &(&[&str], Value<'v>), other: &(&[&str], Value<'v>)| one.0.first() == other.0.first();
    let member = |members: &[(&[&'static str], Value<'v>)]| match members {
        [([name], value)] => Some((Cow::Borrowed(*name), value.clone())),
        [([name, ..], _), ..] => {
            let inner =
                members.iter().map(|(path, value)| (path.get(1..).unwrap_or_default(), value.clone()));
            Some((Cow::Borrowed(*name), object(&inner.collect::<Vec<_>>())))
        }
        _ => None,
    };
    Value::Object(Object::from_members(members.chunk_by(same).filter_map(member).collect()))
}

/// Returns an object with the ids that rows have in columns.
fn with_ids<'v>(value: Value<'v>, ids: &[(&'static str, &'v str)]) -> Option<Value<'v>> {
    let Value::Object(mut object) = value else { return None };
    for (name, id) in ids {
        if !object.contains(name) {
            object.push(Cow::Borrowed(name), Value::String(Cow::Borrowed(id)));
        }
    }
    Some(Value::Object(object))
}

/// Reads a JSON text. Programs cut texts between the halves of a character, which is replaced then.
fn read_value(text: &[u8]) -> Option<Value<'_>> {
    match reader::read(text, &Limits::most()) {
        Err(error) if error.defect == Defect::Surrogate => read_cut_text(str::from_utf8(text).ok()?),
        read => read.ok(),
    }
}

fn json(value: &ForeignValue) -> Option<Value<'_>> {
    match value {
        ForeignValue::Text(text) => read_value(text.as_bytes()),
        ForeignValue::Null | ForeignValue::Number(_) => None,
    }
}

fn plain(value: &ForeignValue) -> Option<Value<'_>> {
    match value {
        ForeignValue::Text(text) => Some(Value::String(Cow::Borrowed(text))),
        ForeignValue::Number(number) => Some(Value::Number(Number::from_literal(&number[..]))),
        ForeignValue::Null => None,
    }
}
