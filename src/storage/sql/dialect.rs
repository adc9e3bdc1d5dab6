//! The differences between SQLite and PostgreSQL.

use std::ops::RangeInclusive;

use crate::digest::Digest;
use crate::storage::check::EntrySelection;

/// A database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum Dialect {
    /// SQLite. Digests are found by their first eight bytes: an index of whole ones would store them twice.
    Sqlite,
    /// PostgreSQL. Long texts cannot be in an index: they are found by the column `key`, which has a hash of them.
    Postgres,
}

impl Dialect {
    /// Returns the rows `alias` of a table whose digests in `column` are in the parameter `list`.
    fn rows_with(self, table: &str, alias: &str, column: &str, list: &str) -> String {
        match self {
            Self::Sqlite => format!(
                "rarray({list}) r CROSS JOIN {table} {alias}
                   ON substr({alias}.{column}, 1, 8) = substr(r.value, 1, 8) AND {alias}.{column} = r.value"
            ),
            Self::Postgres => format!("(SELECT * FROM {table} WHERE {column} = ANY({list})) {alias}"),
        }
    }

    /// Returns the rows `a` of the table of artifacts whose core hashes are in the parameter `list`.
    pub(super) fn artifacts(self, list: &str) -> String {
        self.rows_with("artifact", "a", "core", list)
    }

    /// Returns the rows `b` of the table of blobs whose hashes are in the parameter `list`.
    pub(super) fn blobs(self, list: &str) -> String {
        self.rows_with("blob", "b", "digest", list)
    }

    /// Returns the captures `c` whose hashes are in the parameter `list`.
    pub(super) fn captures_with_hashes(self, list: &str) -> String {
        match self {
            Self::Sqlite => {
                format!(
                    "{} CROSS JOIN capture c ON c.blob = h.id",
                    self.rows_with("blob", "h", "digest", list)
                )
            }
            Self::Postgres => self.rows_with("capture", "c", "digest", list),
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

    /// Returns the condition that a digest is in a range.
    pub(in crate::storage) fn is_in_range(self, digest: &str, range: &RangeInclusive<Digest>) -> String {
        self.is_between(digest, &self.literal(range.start()), &self.literal(range.end()))
    }

    /// Returns a digest as a part of a statement.
    pub(in crate::storage) fn literal(self, digest: &Digest) -> String {
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

    /// Returns the query of the values of the attributes whose names are in the parameter `names`, each with the number of the
    /// artifacts that have it among those of the table `matching`. SQLite has the values of an artifact in an index, and reads
    /// only those that it counts.
    pub(super) fn counted_values(self, matching: &str, names: &str) -> String {
        let is_counted = self.is_in("name", names);
        match self {
            Self::Sqlite => format!(
                "SELECT v.name, v.value, c.artifacts
                   FROM (SELECT x.value, count(*) AS artifacts
                           FROM {matching} m CROSS JOIN attribute x ON x.artifact = m.artifact
                          WHERE +x.value IN (SELECT id FROM attribute_value WHERE {is_counted}) GROUP BY 1) c
                   JOIN attribute_value v ON v.id = c.value"
            ),
            Self::Postgres => format!(
                "SELECT x.name, x.value, count(*) AS artifacts
                   FROM {matching} m JOIN attribute x ON x.artifact = m.artifact WHERE {is_counted} GROUP BY 1, 2"
            ),
        }
    }

    /// Returns the captures `c`, each with its [`Dialect::capture_hash`].
    pub(super) fn captures(self) -> &'static str {
        match self {
            Self::Sqlite => "capture c JOIN blob b ON b.id = c.blob",
            Self::Postgres => "capture c",
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

    /// Returns the column of a capture that refers to its blob.
    pub(super) fn blob_of_capture(self) -> &'static str {
        match self {
            Self::Sqlite => "blob",
            Self::Postgres => "digest",
        }
    }

    /// Returns the column of a blob by which captures and members refer to it.
    pub(super) fn key_of_blob(self) -> &'static str {
        match self {
            Self::Sqlite => "id",
            Self::Postgres => "digest",
        }
    }

    /// Returns the hash of a capture, NULL if it is missing.
    pub(super) fn hash_of_capture(self, capture: &str) -> String {
        match self {
            Self::Sqlite => format!("(SELECT h.digest FROM blob h WHERE h.id = {capture}.blob)"),
            Self::Postgres => format!("{capture}.digest"),
        }
    }

    /// Returns the condition that artifacts of a kind are documents.
    pub(super) fn is_of_documents(self, kind: &str) -> String {
        match self {
            Self::Sqlite => format!("{kind}.member IS NOT NULL"),
            Self::Postgres => format!("NOT {kind}.is_directory"),
        }
    }

    /// Returns the name of the document that a capture `c` of an artifact of the kind `k` is; NULL if it is a directory.
    pub(super) fn name_of_document(self) -> &'static str {
        match self {
            Self::Sqlite => "k.member",
            Self::Postgres => {
                "CASE WHEN NOT k.is_directory THEN coalesce(
                   (SELECT min(n.name) FROM member n WHERE n.capture = c.id AND n.blob = c.digest), '') END"
            }
        }
    }

    /// Returns the files of directories.
    pub(super) fn files_of_directories(self) -> &'static str {
        match self {
            Self::Sqlite => "member",
            Self::Postgres => {
                "(SELECT n.* FROM member n JOIN capture d ON d.id = n.capture JOIN artifact f ON f.id = d.artifact
                    JOIN kind k ON k.id = f.kind WHERE k.is_directory)"
            }
        }
    }

    /// Returns the values of attributes that artifacts have.
    pub(super) fn values_of_attributes(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "(SELECT v.name, v.value FROM attribute_value v WHERE EXISTS (SELECT 1 FROM attribute WHERE value = v.id))"
            }
            Self::Postgres => "attribute",
        }
    }

    /// Returns a condition on the value of an attribute that those satisfy which begin with the parameter `start`, and of
    /// others at most ones that come after them.
    pub(super) fn can_begin_with(self, value: &str, start: &str) -> String {
        match self {
            Self::Sqlite => format!("{value} >= {start}"),
            Self::Postgres => {
                format!("left({value}, 200) >= left({start}, 200) AND starts_with({value}, {start})")
            }
        }
    }

    /// Returns the time of an entry of the journal `j`: the one in its text, which is chained.
    pub(in crate::storage) fn time_of_entry(self) -> &'static str {
        match self {
            Self::Sqlite => {
                // The text of an addition is built from the column.
                "coalesce(CASE WHEN json_valid(j.entry)
                            THEN CAST(round(unixepoch(j.entry ->> 'at', 'subsec') * 1000) AS INTEGER) END, j.at)"
            }
            Self::Postgres => "j.at",
        }
    }

    /// Returns the action of an entry of the journal `j`.
    pub(super) fn action_of_entry(self) -> &'static str {
        match self {
            Self::Sqlite => "coalesce(j.entry ->> 'action', 'add')",
            Self::Postgres => "j.action",
        }
    }

    /// Returns the text of an entry of the journal `j`, and the join for it.
    pub(super) fn text_of_entry(self) -> (&'static str, &'static str) {
        match self {
            Self::Sqlite => ("e.entry", "JOIN journal_entries e ON e.seq = j.seq"),
            Self::Postgres => ("j.entry", ""),
        }
    }

    /// Returns the action that is stored beside the text of an entry of the journal `j`, and empty if it is missing there.
    pub(super) fn stored_action(self) -> &'static str {
        match self {
            // It follows from the text.
            Self::Sqlite => "NULL",
            Self::Postgres => "coalesce(j.action, '')",
        }
    }

    /// Returns the condition for entries of the journal `j`.
    pub(super) fn selects_entry(self, selection: &EntrySelection) -> String {
        match (self, selection) {
            (_, EntrySelection::All) => "true".to_owned(),
            (Self::Sqlite, EntrySelection::Naming(digest)) => format!(
                "{0} IN (j.core, j.capture) OR (j.core IS NULL AND instr(j.entry, '{1}'))",
                self.literal(digest),
                digest.hex()
            ),
            (Self::Sqlite, EntrySelection::About(range)) => {
                format!("j.core IS NULL OR {}", self.is_in_range("j.core", range))
            }
            (Self::Postgres, EntrySelection::Naming(digest)) => {
                format!("position('{}' IN j.entry) > 0", digest.hex())
            }
            // The digits of the core hash follow the name of the member and of the algorithm.
            (Self::Postgres, EntrySelection::About(range)) => format!(
                "j.action <> 'add' OR substr(j.entry, strpos(j.entry, '\"core\":\"sha256:') + 15, 64) BETWEEN '{}' AND '{}'",
                range.start().hex(),
                range.end().hex()
            ),
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
            Self::Postgres => "(condemned_at IS NULL OR base IS NOT NULL)",
        }
    }
}

/// The table that a statement reads first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFirst {
    /// The one with the condition, for finding artifacts.
    Condition,
    /// The one with the artifact, which is known.
    Artifact,
}

impl ReadFirst {
    /// Returns the name of an attribute `x` in PostgreSQL, which does not use an expression to choose an index: the attributes
    /// of one artifact are few.
    fn attribute_name(self) -> &'static str {
        match self {
            Self::Condition => "x.name",
            Self::Artifact => "x.name || ''",
        }
    }
}

/// The tables with attributes `x`, and the expressions of their names and numbers.
pub(super) struct NumberedAttributes {
    pub(super) tables: &'static str,
    pub(super) name: &'static str,
    pub(super) number: &'static str,
}

/// The tables with captures `x`, and the expressions of the states of their signatures and of the ids of their keys.
pub(super) struct SignedCaptures {
    pub(super) tables: &'static str,
    pub(super) state: &'static str,
    pub(super) key_id: &'static str,
}

/// Filters. Rows `x` have the number of an artifact in the column `artifact`.
impl Dialect {
    /// Returns what keeps a subquery from becoming a part of the statement around it, so that it is evaluated for each of its
    /// rows. SQLite reads tables in the order of a cross join.
    pub(super) fn kept_apart(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "OFFSET 0",
        }
    }

    /// Returns the join after which rows are read by what was read before.
    pub(super) fn then_join(self) -> &'static str {
        match self {
            Self::Sqlite => "CROSS JOIN",
            Self::Postgres => "JOIN",
        }
    }

    /// Returns the artifacts `a` of the rows of `query`, which is called `name` and has the column `artifact`. They are looked up
    /// one by one: PostgreSQL would take the rows for many, and read the artifacts in the order of the page.
    pub(super) fn artifacts_of(self, query: &str, name: &str) -> String {
        match self {
            Self::Sqlite => format!("({query}) {name} CROSS JOIN artifact a ON a.id = {name}.artifact"),
            Self::Postgres => format!(
                "({query}) {name}
                 CROSS JOIN LATERAL (SELECT * FROM artifact b WHERE b.id = {name}.artifact OFFSET 0) a"
            ),
        }
    }

    /// Returns the artifacts `a`, for reading them in the order of their addition.
    pub(super) fn artifacts_by_addition(self) -> &'static str {
        match self {
            Self::Sqlite => "artifact a INDEXED BY artifact_by_addition",
            Self::Postgres => "artifact a",
        }
    }

    /// Returns what core hashes are sorted by, and the condition that the artifact `a` comes after one in that order.
    pub(super) fn order_by_core(self, after: &str) -> (&'static str, String) {
        match self {
            Self::Sqlite => (
                "substr(a.core, 1, 8), a.core",
                format!("substr(a.core, 1, 8) >= substr({after}, 1, 8) AND a.core > {after}"),
            ),
            Self::Postgres => ("a.core", format!("a.core > {after}")),
        }
    }

    /// Returns the smallest number, as indexes have it.
    pub(super) fn smallest_number(self) -> &'static str {
        match self {
            Self::Sqlite => "-9223372036854775808",
            Self::Postgres => "'-9223372036854775808'::bigint",
        }
    }

    /// Returns the condition that an attribute `x` has a name, and a value with its key.
    pub(super) fn has_value(self, name: &str, value: &str, key: &str, first: ReadFirst) -> String {
        match self {
            Self::Sqlite => format!(
                "x.value = (SELECT v.id FROM attribute_value v WHERE v.name = {name} AND v.value = {value})"
            ),
            Self::Postgres => {
                format!("{} = {name} AND x.key = {key} AND x.value = {value}", first.attribute_name())
            }
        }
    }

    /// Returns the condition that an attribute `x` has a name, and a value that matches a pattern.
    pub(super) fn has_value_like(self, name: &str, pattern: &str, first: ReadFirst) -> String {
        match self {
            Self::Sqlite => format!(
                "x.value IN (SELECT v.id FROM attribute_value v WHERE v.name = {name} AND {})",
                self.is_like("v.value", pattern)
            ),
            Self::Postgres => {
                format!("{} = {name} AND {}", first.attribute_name(), self.is_like("x.value", pattern))
            }
        }
    }

    /// Returns the attributes `x`.
    pub(super) fn numbers(self, first: ReadFirst) -> NumberedAttributes {
        let tables = match (self, first) {
            (Self::Postgres, _) => "attribute x",
            (Self::Sqlite, ReadFirst::Condition) => {
                "attribute_value v CROSS JOIN attribute x ON x.value = v.id"
            }
            (Self::Sqlite, ReadFirst::Artifact) => {
                "attribute x CROSS JOIN attribute_value v ON v.id = x.value"
            }
        };
        match self {
            Self::Sqlite => NumberedAttributes { tables, name: "v.name", number: "v.number" },
            Self::Postgres => {
                let name = first.attribute_name();
                NumberedAttributes { tables, name, number: "x.number" }
            }
        }
    }

    /// Returns the captures `x` with a signature.
    pub(super) fn signatures(self, first: ReadFirst) -> SignedCaptures {
        let tables = match (self, first) {
            (Self::Postgres, _) => "capture x",
            (Self::Sqlite, ReadFirst::Condition) => "signature s CROSS JOIN capture x ON x.id = s.capture",
            (Self::Sqlite, ReadFirst::Artifact) => "capture x CROSS JOIN signature s ON s.capture = x.id",
        };
        match self {
            Self::Sqlite => SignedCaptures { tables, state: "s.state", key_id: "s.key_id" },
            Self::Postgres => SignedCaptures { tables, state: "x.signature", key_id: "x.key_id" },
        }
    }

    /// Returns the condition that a capture `x` has no signature.
    pub(super) fn is_unsigned(self) -> &'static str {
        match self {
            Self::Sqlite => "NOT EXISTS (SELECT 1 FROM signature s WHERE s.capture = x.id)",
            Self::Postgres => "x.signature IS NULL",
        }
    }

    /// Returns a pattern, in which `*` stands for any text, in the form that [`Dialect::is_like`] takes.
    pub(super) fn pattern(self, pattern: &str) -> String {
        if self == Self::Sqlite {
            return pattern.to_owned();
        }
        let mut like = String::with_capacity(pattern.len());
        for character in pattern.chars() {
            match character {
                '*' => like.push('%'),
                '%' | '_' | '\\' => like.extend(['\\', character]),
                _ => like.push(character),
            }
        }
        like
    }

    /// Returns the condition that a text matches a pattern. What SQLite has for that stops at U+0000, and may take very long.
    pub(super) fn is_like(self, text: &str, pattern: &str) -> String {
        match self {
            Self::Sqlite => format!("matches_pattern({pattern}, {text})"),
            Self::Postgres => format!("{text} LIKE {pattern}"),
        }
    }

    /// Returns the condition that bytes contain others.
    pub(super) fn has_bytes(self, bytes: &str, others: &str) -> String {
        match self {
            Self::Sqlite => format!("instr({bytes}, {others}) > 0"),
            Self::Postgres => format!("position({others} IN {bytes}) > 0"),
        }
    }
}
