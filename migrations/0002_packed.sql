-- Everything that there is one of for each artifact is packed, and indexes cost the same however large the vault is.
-- docs/sql.md explains the views; the tables behind them may change with any version.
--
-- Digests are 32-byte blobs and are found by their first eight bytes: whole digests would stand in the vault twice. Who
-- looks something up compares the whole digest. Times are milliseconds since 1970 in UTC.

DROP VIEW artifacts;
DROP VIEW captures;
DROP VIEW mentions;
DROP VIEW attributes;
DROP INDEX artifact_by_kind;
DROP INDEX capture_by_artifact;
DROP INDEX member_by_blob;
DROP INDEX attribute_by_value;
DROP INDEX identity_by_artifact;
DROP INDEX name_mention_by_handle;
DROP INDEX link_by_target;
DROP VIEW stated_links;
ALTER TABLE artifact RENAME TO old_artifact;
ALTER TABLE blob RENAME TO old_blob;
ALTER TABLE payload RENAME TO old_payload;
ALTER TABLE capture RENAME TO old_capture;
ALTER TABLE member RENAME TO old_member;
ALTER TABLE mention RENAME TO old_mention;
ALTER TABLE attribute RENAME TO old_attribute;
ALTER TABLE identity RENAME TO old_identity;
ALTER TABLE name_mention RENAME TO old_name_mention;
ALTER TABLE link RENAME TO old_link;
ALTER TABLE journal RENAME TO old_journal;

-- The name of the one file of the kind's artifacts; nothing if they are directories.
ALTER TABLE kind ADD COLUMN member TEXT;

CREATE TABLE artifact (
  id       INTEGER PRIMARY KEY,
  core     BLOB NOT NULL CHECK (length(core) = 32),
  kind     INTEGER NOT NULL REFERENCES kind (id),
  added_at INTEGER NOT NULL
) STRICT;

CREATE INDEX artifact_by_core ON artifact (substr(core, 1, 8));
CREATE INDEX artifact_by_kind ON artifact (kind);

CREATE TABLE blob (
  id     INTEGER PRIMARY KEY,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  size   INTEGER NOT NULL
) STRICT;

CREATE INDEX blob_by_digest ON blob (substr(digest, 1, 8));

-- What documents of one kind have in common, for their compression. It has pieces of the documents that it was made of, so
-- it must go when one of them may have been removed: those that were removed after `begun`, the last entry of the journal
-- when collecting them began. Numbers are never used again, as readers remember dictionaries by them.
CREATE TABLE dictionary (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  kind   INTEGER NOT NULL REFERENCES kind (id),
  begun  INTEGER NOT NULL,
  digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  bytes  BLOB NOT NULL
) STRICT;

-- Apart from `blob`, so that listing never touches what is stored. docs/storage.md explains the encodings.
CREATE TABLE payload (
  blob       INTEGER PRIMARY KEY REFERENCES blob (id),
  encoding   INTEGER NOT NULL,
  -- The payload that this one is stored as a difference to. That one is stored whole.
  base       INTEGER REFERENCES payload (blob),
  dictionary INTEGER REFERENCES dictionary (id),
  -- The digests that were cut out of the text.
  digests    BLOB,
  bytes      BLOB NOT NULL
) STRICT;

CREATE INDEX payload_by_base ON payload (base) WHERE base IS NOT NULL;

-- A capture of a document is its blob. One of a directory has members, and a digest over them.
CREATE TABLE capture (
  id       INTEGER PRIMARY KEY,
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  blob     INTEGER REFERENCES blob (id),
  digest   BLOB CHECK (length(digest) = 32),
  size     INTEGER NOT NULL,
  added_at INTEGER NOT NULL,
  warnings TEXT,
  -- The beginning of the SHA-256 of the core hash and the capture hash: shows that a capture is still with its own
  -- artifact.
  seal     BLOB NOT NULL CHECK (length(seal) = 16),
  CHECK ((blob IS NULL) <> (digest IS NULL))
) STRICT;

CREATE INDEX capture_by_artifact ON capture (artifact);
CREATE INDEX capture_by_blob ON capture (blob) WHERE blob IS NOT NULL;
CREATE UNIQUE INDEX capture_by_digest ON capture (digest) WHERE digest IS NOT NULL;

CREATE TABLE member (
  capture INTEGER NOT NULL REFERENCES capture (id),
  name    TEXT NOT NULL,
  blob    INTEGER NOT NULL REFERENCES blob (id),
  PRIMARY KEY (capture, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX member_by_blob ON member (blob);

-- What a capture mentions: digests, each in a role and at a place. Captures that mention nothing that an earlier capture
-- of the artifact does not mention have no list. Digests that were cut out of a blob stand there and not here.
CREATE TABLE mention_list (
  capture INTEGER PRIMARY KEY REFERENCES capture (id),
  -- One of the capture's own. No reference: removing a blob would read all lists.
  blob    INTEGER,
  bytes   BLOB NOT NULL
) STRICT;

-- Which lists to look at for a digest: sorted segments, each cut into 1 << bits buckets by the first bits of the digest.
-- An entry is no proof: the list is. Segment 0 takes in what is added; from it and from smaller ones larger ones are made.
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

CREATE TABLE attribute_value (
  id    INTEGER PRIMARY KEY,
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  UNIQUE (name, value)
) STRICT;

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
  dangles  INTEGER NOT NULL,
  PRIMARY KEY (artifact, relation, handle)
) STRICT, WITHOUT ROWID;

CREATE INDEX name_mention_by_handle ON name_mention (handle);

-- Links that people state. Those that follow from what artifacts mention are not stored anywhere.
CREATE TABLE link (
  source    INTEGER NOT NULL REFERENCES artifact (id),
  relation  TEXT NOT NULL,
  target    INTEGER NOT NULL REFERENCES artifact (id),
  note      TEXT,
  stated_at INTEGER NOT NULL,
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

-- Who did what the journal records.
CREATE TABLE actor (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- Append-only. `chain` is the SHA-256 of the previous `chain` (32 zero bytes before the first) and the entry's text.
-- Additions, of which there are many, stand here in parts; the view `journal_entries` has the text of every entry.
CREATE TABLE journal (
  seq     INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL,
  actor   INTEGER REFERENCES actor (id),
  kind    INTEGER REFERENCES kind (id),
  core    BLOB CHECK (length(core) = 32),
  capture BLOB CHECK (length(capture) = 32),
  size    INTEGER,
  entry   TEXT,
  chain   BLOB NOT NULL CHECK (length(chain) = 32),
  CHECK ((entry IS NULL) = (core IS NOT NULL)),
  CHECK ((core IS NULL) = (capture IS NULL) AND (core IS NULL) = (kind IS NULL) AND (core IS NULL) = (size IS NULL)),
  CHECK (actor IS NULL OR core IS NOT NULL)
) STRICT;

-- Core hashes and capture hashes of what was removed, with the entry that says so.
CREATE TABLE tombstone (
  digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
  entry  INTEGER NOT NULL REFERENCES journal (seq)
) STRICT, WITHOUT ROWID;

INSERT INTO artifact SELECT id, core, kind, added_at FROM old_artifact ORDER BY id;
INSERT INTO blob SELECT id, digest, size FROM old_blob ORDER BY id;
INSERT INTO payload SELECT blob, encoding, NULL, NULL, NULL, bytes FROM old_payload ORDER BY blob;
INSERT INTO capture
  SELECT c.id, c.artifact, b.id, CASE WHEN b.id IS NULL THEN c.digest END, c.size, c.added_at,
         nullif(c.warnings, '[]'), substr(c.seal, 1, 16)
    FROM old_capture c LEFT JOIN old_blob b ON b.digest = c.digest ORDER BY c.id;
INSERT INTO member
  SELECT m.capture, m.name, m.blob
    FROM old_member m JOIN capture c ON c.id = m.capture WHERE c.digest IS NOT NULL;
UPDATE kind SET member =
  (SELECT m.name FROM old_artifact a JOIN capture c ON c.artifact = a.id AND c.blob IS NOT NULL
     JOIN old_member m ON m.capture = c.id WHERE a.kind = kind.id LIMIT 1);
INSERT INTO attribute_value (name, value) SELECT DISTINCT name, value FROM old_attribute ORDER BY name, value;
INSERT INTO attribute
  SELECT v.id, a.artifact FROM old_attribute a JOIN attribute_value v ON v.name = a.name AND v.value = a.value;
INSERT INTO identity SELECT handle, artifact FROM old_identity;
INSERT INTO name_mention SELECT artifact, relation, handle, dangles FROM old_name_mention;
INSERT INTO link SELECT source, relation, target, note, stated_at FROM old_link;
INSERT INTO journal (seq, at, kind, core, capture, size, entry, chain)
  SELECT j.seq, CAST(round(unixepoch(j.entry ->> 'at', 'subsec') * 1000) AS INTEGER), k.id,
         CASE WHEN k.id IS NOT NULL THEN unhex(substr(j.entry ->> 'core', 8)) END,
         CASE WHEN k.id IS NOT NULL THEN unhex(substr(j.entry ->> 'capture', 8)) END,
         CASE WHEN k.id IS NOT NULL THEN j.entry ->> 'size' END,
         CASE WHEN k.id IS NULL THEN j.entry END,
         j.chain
    FROM old_journal j LEFT JOIN kind k ON j.entry ->> 'action' = 'add' AND k.name = j.entry ->> 'kind'
   ORDER BY j.seq;

DROP TABLE old_attribute;
DROP TABLE old_identity;
DROP TABLE old_name_mention;
DROP TABLE old_link;
DROP TABLE old_journal;
DROP TABLE old_member;
DROP TABLE old_payload;
DROP TABLE mention_key;

-- `artifact` is the same number in every view, to join on: hashes as text cannot use an index.
CREATE VIEW artifacts AS
  SELECT a.id AS artifact,
         'sha256:' || lower(hex(a.core)) AS core_hash,
         k.name AS kind,
         strftime('%Y-%m-%dT%H:%M:%fZ', a.added_at / 1000.0, 'unixepoch') AS added_at,
         (SELECT count(*) FROM capture c WHERE c.artifact = a.id) AS captures
    FROM artifact a JOIN kind k ON k.id = a.kind;

CREATE VIEW captures AS
  SELECT c.artifact AS artifact,
         'sha256:' || lower(hex(coalesce(c.digest, b.digest))) AS capture_hash,
         c.size AS size,
         strftime('%Y-%m-%dT%H:%M:%fZ', c.added_at / 1000.0, 'unixepoch') AS added_at,
         coalesce(c.warnings, '[]') AS warnings
    FROM capture c LEFT JOIN blob b ON b.id = c.blob;

CREATE VIEW attributes AS
  SELECT a.artifact AS artifact, v.name AS name, v.value AS value
    FROM attribute a JOIN attribute_value v ON v.id = a.value;

CREATE VIEW stated_links AS
  SELECT source AS artifact,
         relation AS relation,
         target AS target,
         note AS note,
         strftime('%Y-%m-%dT%H:%M:%fZ', stated_at / 1000.0, 'unixepoch') AS stated_at
    FROM link;

-- The text of every entry, whose bytes the chain goes over.
CREATE VIEW journal_entries AS
  SELECT j.seq AS seq,
         coalesce(j.entry,
           '{"action":"add",' || CASE WHEN j.actor IS NULL THEN '' ELSE '"actor":' || json_quote(a.name) || ',' END || '"at":"' ||
           strftime('%Y-%m-%dT%H:%M:%S', j.at / 1000, 'unixepoch') || printf('.%03dZ', j.at % 1000) ||
           '","capture":"sha256:' || lower(hex(j.capture)) ||
           '","core":"sha256:' || lower(hex(j.core)) ||
           '","kind":' || json_quote(k.name) ||
           ',"size":' || j.size || '}') AS entry,
         'sha256:' || lower(hex(j.chain)) AS chain
    FROM journal j LEFT JOIN kind k ON k.id = j.kind LEFT JOIN actor a ON a.id = j.actor;

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

-- What was removed. `hash` is a core hash or a capture hash.
CREATE VIEW tombstones AS
  SELECT 'sha256:' || lower(hex(t.digest)) AS hash,
         j.entry ->> 'core' AS core_hash,
         j.entry ->> 'kind' AS kind,
         j.entry ->> 'at' AS removed_at,
         j.entry ->> 'actor' AS actor,
         j.entry ->> 'reason' AS reason,
         t.entry AS seq
    FROM tombstone t JOIN journal j ON j.seq = t.entry;
