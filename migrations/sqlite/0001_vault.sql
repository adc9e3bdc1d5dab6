-- The schema of a vault in a file. docs/sql.md explains the views; the tables behind them may change with any version.
--
-- Digests are 32-byte blobs and are found by their first eight bytes: indexes of whole digests would store them twice. A
-- lookup compares the whole digest. Times are milliseconds since 1970 in UTC. Numbers of artifacts and captures are those of
-- the journal entries that add them, so that they are in the order of the journal and the same in a copy.

-- "rvdb": what `file` and other programs tell a vault by.
PRAGMA application_id = 1920361570;

-- Kinds and roles are brought by the program, so that a new kind needs no migration.
CREATE TABLE kind (
  id        INTEGER PRIMARY KEY,
  name      TEXT NOT NULL UNIQUE,
  -- The relation of artifacts of the kind to those that state their core hash, if it has a name.
  stated_by TEXT,
  -- The name of the one file of the kind's artifacts; null if they are directories.
  member    TEXT
) STRICT;

-- What kinds call their mentions.
CREATE TABLE role (
  id         INTEGER PRIMARY KEY,
  kind       INTEGER NOT NULL REFERENCES kind (id),
  name       TEXT NOT NULL,
  role_group TEXT NOT NULL,
  unit       TEXT NOT NULL,
  relation   TEXT,
  dangles    INTEGER NOT NULL CHECK (dangles IN (0, 1)),
  UNIQUE (kind, name)
) STRICT;

CREATE TABLE artifact (
  id         INTEGER PRIMARY KEY,
  core       BLOB NOT NULL CHECK (length(core) = 32),
  kind       INTEGER NOT NULL REFERENCES kind (id),
  added_at   INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  -- The number of the last journal entry that says that a capture was added or seen, times 2^20, plus its position there.
  arrival    INTEGER NOT NULL,
  -- The latest creation time that a capture states.
  created_at INTEGER
) STRICT;

CREATE INDEX artifact_by_core ON artifact (substr(core, 1, 8));
CREATE INDEX artifact_by_kind ON artifact (kind);
CREATE INDEX artifact_by_arrival ON artifact (arrival);
CREATE INDEX artifact_by_kind_and_arrival ON artifact (kind, arrival);
CREATE INDEX artifact_by_addition ON artifact (added_at);
CREATE INDEX artifact_by_creation ON artifact (coalesce(created_at, -9223372036854775808), arrival);

CREATE TABLE blob (
  id     INTEGER PRIMARY KEY,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  size   INTEGER NOT NULL
) STRICT;

CREATE INDEX blob_by_digest ON blob (substr(digest, 1, 8));

-- What documents of one kind have in common, for their compression. It has pieces of the documents that it was made of, so
-- it is dropped when one of them may have been removed: those that were removed after `begun`, the last entry of the journal
-- when collecting them began. Numbers are never used again, as readers remember dictionaries by them.
CREATE TABLE dictionary (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  kind   INTEGER NOT NULL REFERENCES kind (id),
  begun  INTEGER NOT NULL,
  digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  bytes  BLOB NOT NULL
) STRICT;

-- Apart from `blob`, so that listing never reads stored bytes. docs/storage.md explains the encodings.
CREATE TABLE payload (
  blob       INTEGER PRIMARY KEY REFERENCES blob (id),
  encoding   INTEGER NOT NULL,
  -- The payload that this one is stored as a difference to. That one is stored whole.
  base       INTEGER REFERENCES payload (blob),
  dictionary INTEGER REFERENCES dictionary (id),
  -- The digests that were stripped from the text.
  digests    BLOB,
  bytes      BLOB NOT NULL
) STRICT;

CREATE INDEX payload_by_base ON payload (base) WHERE base IS NOT NULL;

-- A capture is a blob: a document, or the manifest of a directory, which has the names and digests of its files. Its hash is
-- that of the blob. The kind says which of the two it is.
CREATE TABLE capture (
  id           INTEGER PRIMARY KEY,
  artifact     INTEGER NOT NULL REFERENCES artifact (id),
  blob         INTEGER NOT NULL REFERENCES blob (id),
  size         INTEGER NOT NULL,
  added_at     INTEGER NOT NULL,
  seen_at      INTEGER NOT NULL,
  warnings     TEXT,
  -- The beginning of the SHA-256 of the core hash and the capture hash: shows that a capture is still with its own artifact.
  seal         BLOB NOT NULL CHECK (length(seal) = 16),
  -- The entry of the journal that has the path of the capture. Paths are stored only there, where the chain proves them.
  source_entry INTEGER
) STRICT;

CREATE INDEX capture_by_artifact ON capture (artifact);
CREATE INDEX capture_by_blob ON capture (blob);

-- The files of directories, as their manifests have them.
CREATE TABLE member (
  capture INTEGER NOT NULL REFERENCES capture (id),
  name    TEXT NOT NULL,
  blob    INTEGER NOT NULL REFERENCES blob (id),
  PRIMARY KEY (capture, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX member_by_blob ON member (blob);

-- The signatures of captures that have one.
CREATE TABLE signature (
  capture INTEGER PRIMARY KEY REFERENCES capture (id),
  state   TEXT NOT NULL CHECK (state IN ('verified', 'unchecked', 'wrong')),
  -- The key that it was checked with, or that the capture names.
  key_id  TEXT
) STRICT;

-- What a capture mentions: digests, each in a role and at a place. Captures that mention nothing that an earlier capture
-- of the artifact does not mention have no list. Digests that were stripped from a blob are there and not here.
CREATE TABLE mention_list (
  capture INTEGER PRIMARY KEY REFERENCES capture (id),
  -- One of the capture's own. No reference: removing a blob would read all lists.
  blob    INTEGER,
  bytes   BLOB NOT NULL
) STRICT;

-- Which lists to read for a digest: sorted segments, each divided into 1 << bits buckets by the first bits of the digest.
-- An entry is no proof: the list is. Segment 0 takes additions; larger segments are made of it and of smaller ones.
CREATE TABLE mention_segment (
  id      INTEGER PRIMARY KEY,
  bits    INTEGER NOT NULL,
  entries INTEGER NOT NULL
) STRICT;

-- The bucket b of segment s has the number s << 24 | b.
CREATE TABLE mention_bucket (
  id    INTEGER PRIMARY KEY,
  bytes BLOB NOT NULL
) STRICT;

-- Which lists to read for references to artifacts that the vault does not have: those of captures that refer to a digest
-- with these first eight bytes, as a number, while no artifact has it. A row is no proof: the list is. No reference to
-- captures: removing one would read all rows.
CREATE TABLE unresolved_reference (
  key     INTEGER NOT NULL,
  capture INTEGER NOT NULL,
  PRIMARY KEY (key, capture)
) STRICT, WITHOUT ROWID;

CREATE TABLE attribute_value (
  id     INTEGER PRIMARY KEY,
  name   TEXT NOT NULL,
  value  TEXT NOT NULL,
  -- That of a value whose type has an order: milliseconds since 1970, milliseconds of durations, millionths of amounts.
  number INTEGER,
  UNIQUE (name, value)
) STRICT;

CREATE INDEX attribute_value_by_number ON attribute_value (name, number) WHERE number IS NOT NULL;

CREATE TABLE attribute (
  value    INTEGER NOT NULL REFERENCES attribute_value (id),
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  PRIMARY KEY (value, artifact)
) STRICT, WITHOUT ROWID;

CREATE INDEX attribute_by_artifact ON attribute (artifact);

-- Names by which artifacts are referred to, such as run:run-123.
CREATE TABLE identity (
  handle   TEXT NOT NULL,
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  PRIMARY KEY (handle, artifact)
) STRICT, WITHOUT ROWID;

CREATE INDEX identity_by_artifact ON identity (artifact);

-- Names by which artifacts refer to others.
CREATE TABLE name_mention (
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  relation TEXT NOT NULL,
  handle   TEXT NOT NULL,
  dangles  INTEGER NOT NULL CHECK (dangles IN (0, 1)),
  PRIMARY KEY (artifact, relation, handle)
) STRICT, WITHOUT ROWID;

CREATE INDEX name_mention_by_handle ON name_mention (handle);

-- Links that people state. Those that follow from what artifacts mention are not stored anywhere.
CREATE TABLE link (
  source    INTEGER NOT NULL REFERENCES artifact (id),
  relation  TEXT NOT NULL,
  target    INTEGER NOT NULL REFERENCES artifact (id),
  note      TEXT,
  at        INTEGER NOT NULL,
  PRIMARY KEY (source, relation, target)
) STRICT, WITHOUT ROWID;

CREATE INDEX link_by_target ON link (target);

-- Names that people give to artifacts.
CREATE TABLE tag (
  name     TEXT PRIMARY KEY,
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX tag_by_artifact ON tag (artifact);

-- Artifacts that must not be removed.
CREATE TABLE pin (
  artifact INTEGER PRIMARY KEY REFERENCES artifact (id),
  note     TEXT,
  at       INTEGER NOT NULL
) STRICT;

-- What people want to remember of an artifact. `folded` is the text in lower case, in which it is searched.
CREATE TABLE note (
  artifact INTEGER PRIMARY KEY REFERENCES artifact (id),
  text     TEXT NOT NULL,
  folded   BLOB NOT NULL,
  at       INTEGER NOT NULL
) STRICT;

-- Labels, which many artifacts share. An artifact has at most one of each key.
CREATE TABLE label (
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  key      TEXT NOT NULL,
  value    TEXT NOT NULL,
  at       INTEGER NOT NULL,
  PRIMARY KEY (artifact, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX label_by_value ON label (key, value, artifact);

-- Append-only. `chain` is the SHA-256 of the previous `chain` (32 zero bytes before the first) and the entry's text.
-- Additions, of which there are many, are here in parts; the view `journal_entries` has the text of every entry.
CREATE TABLE journal (
  seq         INTEGER PRIMARY KEY,
  at          INTEGER NOT NULL,
  actor       TEXT,
  kind        TEXT,
  core        BLOB CHECK (length(core) = 32),
  capture     BLOB CHECK (length(capture) = 32),
  size        INTEGER,
  entry       TEXT,
  chain       BLOB NOT NULL CHECK (length(chain) = 32),
  -- The path or name of what the capture was read from, if the addition recorded one.
  source_path TEXT CHECK (source_path IS NULL OR core IS NOT NULL),
  CHECK ((entry IS NULL) = (core IS NOT NULL)),
  CHECK ((core IS NULL) = (capture IS NULL) AND (core IS NULL) = (kind IS NULL) AND (core IS NULL) = (size IS NULL)),
  CHECK (actor IS NULL OR core IS NOT NULL)
) STRICT;

-- Core hashes and capture hashes of what was removed, each with the entry that says so.
CREATE TABLE tombstone (
  digest    BLOB NOT NULL CHECK (length(digest) = 32),
  entry     INTEGER NOT NULL REFERENCES journal (seq),
  at        INTEGER NOT NULL,
  core      BLOB NOT NULL CHECK (length(core) = 32),
  kind      TEXT NOT NULL,
  actor     TEXT,
  reason    TEXT,
  remaining INTEGER NOT NULL,
  size      INTEGER NOT NULL,
  PRIMARY KEY (digest, entry)
) STRICT, WITHOUT ROWID;

CREATE INDEX tombstone_by_core ON tombstone (core);

-- `artifact` is the same number in every view, to join on: hashes as text cannot use an index.
CREATE VIEW artifacts AS
  SELECT a.id AS artifact,
         'sha256:' || lower(hex(a.core)) AS core_hash,
         k.name AS kind,
         strftime('%Y-%m-%dT%H:%M:%fZ', a.added_at / 1000.0, 'unixepoch') AS added_at,
         strftime('%Y-%m-%dT%H:%M:%fZ', a.seen_at / 1000.0, 'unixepoch') AS seen_at,
         (SELECT count(*) FROM capture c WHERE c.artifact = a.id) AS captures
    FROM artifact a JOIN kind k ON k.id = a.kind;

CREATE VIEW captures AS
  SELECT c.artifact AS artifact,
         'sha256:' || lower(hex(b.digest)) AS capture_hash,
         c.size AS size,
         strftime('%Y-%m-%dT%H:%M:%fZ', c.added_at / 1000.0, 'unixepoch') AS added_at,
         strftime('%Y-%m-%dT%H:%M:%fZ', c.seen_at / 1000.0, 'unixepoch') AS seen_at,
         j.source_path AS source_path,
         coalesce(s.state, 'unsigned') AS signature,
         s.key_id AS key_id,
         coalesce(c.warnings, '[]') AS warnings
    FROM capture c LEFT JOIN blob b ON b.id = c.blob LEFT JOIN signature s ON s.capture = c.id
         LEFT JOIN journal j ON j.seq = c.source_entry;

CREATE VIEW attributes AS
  SELECT a.artifact AS artifact, v.name AS name, v.value AS value, v.number AS number
    FROM attribute a JOIN attribute_value v ON v.id = a.value;

CREATE VIEW stated_links AS
  SELECT source AS artifact,
         relation AS relation,
         target AS target,
         note AS note,
         strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS stated_at
    FROM link;

CREATE VIEW tags AS
  SELECT artifact AS artifact,
         name AS name,
         strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS tagged_at
    FROM tag;

CREATE VIEW pins AS
  SELECT artifact AS artifact,
         note AS note,
         strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS pinned_at
    FROM pin;

CREATE VIEW notes AS
  SELECT artifact AS artifact,
         text AS note,
         strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS noted_at
    FROM note;

CREATE VIEW labels AS
  SELECT artifact AS artifact,
         key AS key,
         value AS value,
         strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS labeled_at
    FROM label;

-- What was removed. `hash` is a core hash or a capture hash.
CREATE VIEW tombstones AS
  SELECT 'sha256:' || lower(hex(digest)) AS hash,
         'sha256:' || lower(hex(core)) AS core_hash,
         kind AS kind,
         strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS removed_at,
         actor AS actor,
         reason AS reason,
         entry AS seq
    FROM tombstone;

-- The text of every entry, over which the chain is computed. Times before 1970 are negative numbers.
CREATE VIEW journal_entries AS
  SELECT j.seq AS seq,
         coalesce(j.entry,
           '{"action":"add",' || CASE WHEN j.actor IS NULL THEN '' ELSE '"actor":' || json_quote(j.actor) || ',' END || '"at":"' ||
           strftime('%Y-%m-%dT%H:%M:%S', (j.at - (j.at % 1000 + 1000) % 1000) / 1000, 'unixepoch') ||
           printf('.%03dZ', (j.at % 1000 + 1000) % 1000) ||
           '","capture":"sha256:' || lower(hex(j.capture)) ||
           '","core":"sha256:' || lower(hex(j.core)) ||
           '","kind":' || json_quote(j.kind) ||
           ',"size":' || j.size ||
           CASE WHEN j.source_path IS NULL THEN '' ELSE ',"source_path":' || json_quote(j.source_path) END || '}') AS entry,
         'sha256:' || lower(hex(j.chain)) AS chain
    FROM journal j;
