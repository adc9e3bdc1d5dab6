-- The first schema of a vault. docs/sql.md explains the views; the tables behind them may change with any version.
-- Digests are 32-byte blobs. Times are milliseconds since 1970 in UTC.

-- "runv": what `file` and other programs tell a vault by.
PRAGMA application_id = 1920298614;

CREATE TABLE kind (
  id        INTEGER PRIMARY KEY,
  name      TEXT NOT NULL UNIQUE,
  stated_by TEXT
) STRICT;

CREATE TABLE artifact (
  id       INTEGER PRIMARY KEY,
  core     BLOB NOT NULL UNIQUE CHECK (length(core) = 32),
  kind     INTEGER NOT NULL REFERENCES kind (id),
  added_at INTEGER NOT NULL
) STRICT;

CREATE INDEX artifact_by_kind ON artifact (kind);

CREATE TABLE blob (
  id     INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  size   INTEGER NOT NULL
) STRICT;

-- Apart from `blob`, so that listing never touches what is stored.
CREATE TABLE payload (
  blob     INTEGER PRIMARY KEY REFERENCES blob (id),
  encoding INTEGER NOT NULL,
  bytes    BLOB NOT NULL
) STRICT;

CREATE TABLE capture (
  id       INTEGER PRIMARY KEY,
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  digest   BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  size     INTEGER NOT NULL,
  added_at INTEGER NOT NULL,
  warnings TEXT NOT NULL,
  -- The SHA-256 of the core hash and the capture hash: shows that a capture is still with its own artifact.
  seal     BLOB NOT NULL CHECK (length(seal) = 32)
) STRICT;

CREATE INDEX capture_by_artifact ON capture (artifact);

CREATE TABLE member (
  capture INTEGER NOT NULL REFERENCES capture (id),
  name    TEXT NOT NULL,
  blob    INTEGER NOT NULL REFERENCES blob (id),
  PRIMARY KEY (capture, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX member_by_blob ON member (blob);

-- What kinds call their mentions. Kinds bring their own roles, so that a new kind needs no migration.
CREATE TABLE role (
  id         INTEGER PRIMARY KEY,
  kind       INTEGER NOT NULL REFERENCES kind (id),
  name       TEXT NOT NULL,
  role_group TEXT NOT NULL,
  unit       TEXT NOT NULL,
  relation   TEXT,
  dangles    INTEGER NOT NULL,
  UNIQUE (kind, name)
) STRICT;

-- In the order of the artifacts, so that adding appends. A place is a number or a JSON Pointer.
CREATE TABLE mention (
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  role     INTEGER NOT NULL REFERENCES role (id),
  place    ANY NOT NULL,
  digest   BLOB NOT NULL CHECK (length(digest) = 32),
  PRIMARY KEY (artifact, role, place, digest)
) STRICT, WITHOUT ROWID;

-- Finds mentions by the first eight bytes of the digest, as a number. A key is never proof: `mention` has the digest.
CREATE TABLE mention_key (
  key      INTEGER NOT NULL,
  artifact INTEGER NOT NULL,
  role     INTEGER NOT NULL,
  place    ANY NOT NULL,
  PRIMARY KEY (key, artifact, role, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE attribute (
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  name     TEXT NOT NULL,
  value    TEXT NOT NULL,
  PRIMARY KEY (artifact, name, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX attribute_by_value ON attribute (name, value);

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

-- Append-only. `chain` is the SHA-256 of the previous `chain` (32 zero bytes before the first) and the entry's bytes.
CREATE TABLE journal (
  seq   INTEGER PRIMARY KEY,
  entry TEXT NOT NULL,
  chain BLOB NOT NULL CHECK (length(chain) = 32)
) STRICT;

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
         'sha256:' || lower(hex(c.digest)) AS capture_hash,
         c.size AS size,
         strftime('%Y-%m-%dT%H:%M:%fZ', c.added_at / 1000.0, 'unixepoch') AS added_at,
         c.warnings AS warnings
    FROM capture c;

CREATE VIEW mentions AS
  SELECT m.artifact AS artifact,
         r.name AS role,
         r.unit AS unit,
         m.place AS place,
         'sha256:' || lower(hex(m.digest)) AS digest
    FROM mention m JOIN role r ON r.id = m.role;

CREATE VIEW attributes AS
  SELECT artifact, name, value FROM attribute;

CREATE VIEW stated_links AS
  SELECT source AS artifact,
         relation AS relation,
         target AS target,
         note AS note,
         strftime('%Y-%m-%dT%H:%M:%fZ', stated_at / 1000.0, 'unixepoch') AS stated_at
    FROM link;
