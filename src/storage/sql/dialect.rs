//! The differences between SQLite and PostgreSQL.

use crate::digest::Digest;

/// A database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum Dialect {
    /// SQLite. Digests are found by their first eight bytes: an index of whole ones would store them twice.
    Sqlite,
    /// PostgreSQL. Long texts cannot be in an index: they are found by the column `key`, which has a hash of them.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only that engine is one"))]
    Postgres,
}

impl Dialect {
    /// Returns the rows `a` of the table of artifacts whose core hashes are in the parameter `list`.
    pub(super) fn artifacts(self, list: &str) -> String {
        match self {
            Self::Sqlite => format!(
                "rarray({list}) r CROSS JOIN artifact a ON substr(a.core, 1, 8) = substr(r.value, 1, 8) AND a.core = r.value"
            ),
            Self::Postgres => format!("(SELECT * FROM artifact WHERE core = ANY({list})) a"),
        }
    }

    /// Returns the condition that a value is in the parameter `list`.
    pub(super) fn is_in(self, value: &str, list: &str) -> String {
        match self {
            Self::Sqlite => format!("{value} IN rarray({list})"),
            Self::Postgres => format!("{value} = ANY({list})"),
        }
    }

    /// Returns the condition that there is an artifact with this core hash.
    pub(super) fn is_stored(self, core: &str) -> String {
        format!("EXISTS (SELECT 1 FROM artifact a WHERE {})", self.same_digest("a.core", core))
    }

    /// Returns the condition that two digests are the same, the first of which is indexed.
    pub(super) fn same_digest(self, one: &str, other: &str) -> String {
        match self {
            Self::Sqlite => format!("substr({one}, 1, 8) = substr({other}, 1, 8) AND {one} = {other}"),
            Self::Postgres => format!("{one} = {other}"),
        }
    }

    /// Returns the condition that the handles of two rows are the same.
    pub(super) fn same_handle(self, one: &str, other: &str) -> String {
        match self {
            Self::Sqlite => format!("{one}.handle = {other}.handle"),
            Self::Postgres => format!("{one}.key = {other}.key AND {one}.handle = {other}.handle"),
        }
    }

    /// Returns the condition that the handle of a row is in the parameter `handles`. The parameter `keys` has their hashes.
    pub(super) fn has_handle(self, row: &str, handles: &str, keys: &str) -> String {
        let has_handle = self.is_in(&format!("{row}.handle"), handles);
        match self {
            Self::Sqlite => has_handle,
            Self::Postgres => format!("{row}.key = ANY({keys}) AND {has_handle}"),
        }
    }
}

impl Dialect {
    /// Returns the condition that a digest is between two others.
    pub(super) fn is_between(self, digest: &str, low: &str, high: &str) -> String {
        let is_between = format!("{digest} BETWEEN {low} AND {high}");
        match self {
            Self::Sqlite => format!(
                "substr({digest}, 1, 8) BETWEEN substr({low}, 1, 8) AND substr({high}, 1, 8) AND {is_between}"
            ),
            Self::Postgres => is_between,
        }
    }

    /// Returns a digest as a part of a statement.
    pub(super) fn literal(self, digest: &Digest) -> String {
        match self {
            Self::Sqlite => format!("x'{}'", digest.hex()),
            Self::Postgres => format!("decode('{}', 'hex')", digest.hex()),
        }
    }

    /// Returns the join of artifacts `a` with their attributes `t`.
    pub(super) fn attributes(self) -> &'static str {
        match self {
            Self::Sqlite => "JOIN attribute l ON l.artifact = a.id JOIN attribute_value t ON t.id = l.value",
            Self::Postgres => "JOIN attribute t ON t.artifact = a.id",
        }
    }

    /// Returns the captures `c`, each with its [`Dialect::capture_hash`].
    pub(super) fn captures(self) -> &'static str {
        match self {
            Self::Sqlite => "capture c JOIN blob b ON b.id = c.blob",
            Self::Postgres => "capture c",
        }
    }

    /// Returns the captures `c` whose hashes are in the parameter `list`.
    pub(super) fn captures_with_hashes(self, list: &str) -> String {
        match self {
            Self::Sqlite => format!(
                "rarray({list}) r CROSS JOIN blob h ON substr(h.digest, 1, 8) = substr(r.value, 1, 8) AND h.digest = r.value
                   CROSS JOIN capture c ON c.blob = h.id"
            ),
            Self::Postgres => format!("(SELECT * FROM capture WHERE digest = ANY({list})) c"),
        }
    }

    /// Returns the hash of a capture `c`.
    pub(super) fn capture_hash(self) -> &'static str {
        match self {
            Self::Sqlite => "b.digest",
            Self::Postgres => "c.digest",
        }
    }

    /// Returns what is recorded of a capture `c` of the artifact `a`, and the joins for it.
    pub(super) fn capture_columns(self) -> (&'static str, &'static str) {
        match self {
            Self::Sqlite => (
                "a.core, b.digest, c.size, c.added_at, c.seen_at, c.warnings, s.state, s.key_id, j.source_path",
                "LEFT JOIN blob b ON b.id = c.blob LEFT JOIN signature s ON s.capture = c.id
                 LEFT JOIN journal j ON j.seq = c.source_entry",
            ),
            Self::Postgres => (
                "a.core, c.digest, c.size, c.added_at, c.seen_at, c.warnings, c.signature, c.key_id, c.source_path",
                "",
            ),
        }
    }

    /// Returns the state of the signature of a capture, NULL if it has none.
    pub(super) fn signature_state(self, capture: &str) -> String {
        match self {
            Self::Sqlite => format!("(SELECT s.state FROM signature s WHERE s.capture = {capture}.id)"),
            Self::Postgres => format!("{capture}.signature"),
        }
    }

    /// Returns the column of a capture that refers to its blob.
    pub(super) fn blob_of_capture(self) -> &'static str {
        match self {
            Self::Sqlite => "blob",
            Self::Postgres => "digest",
        }
    }

    /// Returns the column of a blob to which others refer.
    pub(super) fn key_of_blobs(self) -> &'static str {
        match self {
            Self::Sqlite => "id",
            Self::Postgres => "digest",
        }
    }

    /// Returns whether artifacts of a kind are directories, and the name of their only file, if that is recorded.
    pub(super) fn form_of_kinds(self) -> &'static str {
        match self {
            Self::Sqlite => "member IS NULL, member",
            Self::Postgres => "is_directory, NULL",
        }
    }

    /// Returns the condition that a blob is not one of those that only wait for their deletion.
    pub(super) fn is_kept_blob(self) -> &'static str {
        match self {
            Self::Sqlite => "true",
            Self::Postgres => "condemned_at IS NULL",
        }
    }
}
