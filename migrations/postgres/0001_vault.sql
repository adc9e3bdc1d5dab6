-- The schema of a vault in PostgreSQL. docs/sql.md explains the views; the tables behind them may change with any version.
--
-- Digests are 32 bytes. Times are milliseconds since 1970 in UTC. Text is compared bytewise, and has no NUL, which
-- PostgreSQL does not accept: U+0000 and U+0001 are stored as U+0001 followed by U+0002 or U+0003, which keeps the order.
-- Numbers of artifacts and captures are those of the journal entries that add them, never from sequences, so that they are
-- in the order of the journal and the same in a copy. Only tables and indexes that distributed engines also have are used.

-- The last entry of the journal. Who writes holds the lock of this row from here to the commit.
CREATE TABLE head (
  id    smallint PRIMARY KEY CHECK (id = 1),
  seq   bigint NOT NULL,
  at    bigint,
  chain bytea NOT NULL CHECK (octet_length(chain) = 32),
  -- Whether the vault is a copy of another one that is not complete.
  is_incomplete boolean NOT NULL DEFAULT false
);

INSERT INTO head (id, seq, chain) VALUES (1, 0, decode(repeat('00', 32), 'hex'));

-- Append-only. `chain` is the SHA-256 of the previous `chain` (32 zero bytes before the first) and the entry's text.
CREATE TABLE journal (
  seq    bigint PRIMARY KEY,
  at     bigint NOT NULL,
  action text COLLATE "C" NOT NULL,
  entry  text COLLATE "C" NOT NULL,
  chain  bytea NOT NULL CHECK (octet_length(chain) = 32)
);

CREATE INDEX journal_by_action ON journal (action, seq);

-- Kinds and roles are brought by the program, so that a new kind needs no migration.
CREATE TABLE kind (
  id           smallint PRIMARY KEY,
  name         text COLLATE "C" NOT NULL UNIQUE,
  -- The relation of artifacts of the kind to those that state their core hash, if it has a name.
  stated_by    text COLLATE "C",
  is_directory boolean NOT NULL
);

CREATE TABLE role (
  id         integer PRIMARY KEY,
  kind       smallint NOT NULL REFERENCES kind (id),
  name       text COLLATE "C" NOT NULL,
  role_group text COLLATE "C" NOT NULL,
  -- The number of the group: the lowest number of a role in it.
  group_id   integer NOT NULL,
  unit       text COLLATE "C" NOT NULL,
  relation   text COLLATE "C",
  dangles    boolean NOT NULL,
  UNIQUE (kind, name)
);

CREATE TABLE artifact (
  id         bigint PRIMARY KEY,
  core       bytea NOT NULL UNIQUE CHECK (octet_length(core) = 32),
  kind       smallint NOT NULL REFERENCES kind (id),
  added_at   bigint NOT NULL,
  seen_at    bigint NOT NULL,
  -- The number of the last journal entry that says that a capture was added or seen, times 2^20, plus its position there.
  arrival    bigint NOT NULL,
  -- The latest creation time that a capture states.
  created_at bigint
);

CREATE INDEX artifact_by_arrival ON artifact (arrival);
CREATE INDEX artifact_by_kind ON artifact (kind, arrival);
CREATE INDEX artifact_by_addition ON artifact (added_at, id);
CREATE INDEX artifact_by_sight ON artifact (seen_at);
CREATE INDEX artifact_by_creation ON artifact (coalesce(created_at, '-9223372036854775808'::bigint), arrival);

-- The object storage of the vault; no row if the bytes are in the table `blob`. An object in the storage has the same
-- number, so that another storage is not mistaken for it.
CREATE TABLE blob_store (
  id         smallint PRIMARY KEY CHECK (id = 1),
  vault      bytea NOT NULL CHECK (octet_length(vault) = 16),
  -- Where it was when the vault was created, for messages.
  url        text COLLATE "C" NOT NULL,
  -- Whether the object with the number was written.
  is_claimed boolean NOT NULL
);

-- Objects that have blobs. They are never changed. An object without blobs is deleted, then its row.
CREATE TABLE object (
  name bytea PRIMARY KEY CHECK (octet_length(name) = 16),
  size bigint NOT NULL
);

-- Bytes, once each, in `bytes`, in a part of an object, or as the first `size` bytes of the blob `base`, which is not stored
-- like that itself. Encoding 0 is plain, 1 is zstd; `size` is that of the plain bytes. When a part of an object is not needed
-- any more, because nothing has the blob or it has a base, it is condemned; it is recorded until the object can be deleted.
CREATE TABLE blob (
  digest       bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
  size         bigint NOT NULL,
  encoding     smallint NOT NULL,
  bytes        bytea,
  object       bytea REFERENCES object (name),
  start        bigint,
  length       bigint,
  condemned_at bigint,
  base         bytea REFERENCES blob (digest),
  CONSTRAINT blob_is_somewhere
    CHECK ((bytes IS NULL) = (object IS NOT NULL OR base IS NOT NULL)
           AND (object IS NULL) = (start IS NULL) AND (start IS NULL) = (length IS NULL))
);

CREATE INDEX blob_by_object ON blob (object) WHERE object IS NOT NULL;
CREATE INDEX blob_by_base ON blob (base) WHERE base IS NOT NULL;
CREATE INDEX blob_by_condemnation ON blob (condemned_at) WHERE condemned_at IS NOT NULL;

-- They are compressed already.
ALTER TABLE blob ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- A capture is a blob: a document, or the manifest of a directory, which has the names and digests of its files. The kind says
-- which of the two it is.
CREATE TABLE capture (
  id        bigint PRIMARY KEY,
  artifact  bigint NOT NULL REFERENCES artifact (id),
  digest    bytea NOT NULL REFERENCES blob (digest),
  size      bigint NOT NULL,
  added_at  bigint NOT NULL,
  seen_at   bigint NOT NULL,
  -- A JSON array; nothing if there are none.
  warnings  text COLLATE "C",
  -- What was found of its signature; nothing if it has none.
  signature text COLLATE "C",
  key_id    text COLLATE "C",
  -- The beginning of the SHA-256 of the core hash and the capture hash: shows that a capture is still with its artifact.
  seal      bytea NOT NULL CHECK (octet_length(seal) = 16),
  -- The path or name of what it was read from, when it was first added.
  source_path text COLLATE "C",
  UNIQUE (digest, artifact)
);

CREATE INDEX capture_by_artifact ON capture (artifact);
CREATE INDEX capture_by_signature ON capture (signature, artifact) WHERE signature IS NOT NULL;

-- The files of captures: a document, or what the manifest of a directory has.
CREATE TABLE member (
  capture bigint NOT NULL REFERENCES capture (id),
  name    text COLLATE "C" NOT NULL,
  blob    bytea NOT NULL REFERENCES blob (digest),
  PRIMARY KEY (capture, name)
);

CREATE INDEX member_by_blob ON member (blob);

-- What a capture mentions in the roles of one group. `digests` are sorted and distinct, `entries` say in which role and at
-- which place each is mentioned, `firsts` are those at place 0.
CREATE TABLE mention_list (
  capture  bigint NOT NULL,
  group_id integer NOT NULL,
  digests  bytea NOT NULL,
  entries  bytea NOT NULL,
  firsts   bytea,
  PRIMARY KEY (capture, group_id)
);

CREATE INDEX mention_list_by_firsts ON mention_list (group_id) WHERE firsts IS NOT NULL;

-- Finds lists by the first eight bytes of a digest, as a number. A key is no proof: the list has the digests.
CREATE TABLE mention_key (
  key      bigint NOT NULL,
  capture  bigint NOT NULL,
  group_id integer NOT NULL
);

CREATE INDEX mention_key_by_key ON mention_key (key, capture);

-- Mentions in roles that relate an artifact to another. A place is a number or a pointer.
CREATE TABLE edge (
  artifact bigint NOT NULL,
  target   bytea NOT NULL CHECK (octet_length(target) = 32),
  role     integer NOT NULL,
  index    bigint,
  pointer  text COLLATE "C",
  CHECK ((index IS NULL) <> (pointer IS NULL))
);

CREATE INDEX edge_by_artifact ON edge (artifact);
CREATE INDEX edge_by_target ON edge (target, artifact, role);

-- Long values cannot be in an index: they are found by a key, the beginning of their SHA-256.
CREATE TABLE attribute (
  artifact bigint NOT NULL,
  name     text COLLATE "C" NOT NULL,
  value    text COLLATE "C" NOT NULL,
  number   bigint,
  key      bigint NOT NULL
);

CREATE INDEX attribute_by_artifact ON attribute (artifact, name);
CREATE INDEX attribute_by_value ON attribute (name, key, artifact);
CREATE INDEX attribute_by_text ON attribute (name, left(value, 200));
CREATE INDEX attribute_by_number ON attribute (name, number, artifact) WHERE number IS NOT NULL;

-- Names by which artifacts are referred to, such as run:run-123.
CREATE TABLE identity (
  artifact bigint NOT NULL,
  handle   text COLLATE "C" NOT NULL,
  key      bigint NOT NULL
);

CREATE INDEX identity_by_artifact ON identity (artifact);
CREATE INDEX identity_by_handle ON identity (key, artifact);

-- Names by which artifacts refer to others.
CREATE TABLE name_mention (
  artifact bigint NOT NULL,
  relation text COLLATE "C" NOT NULL,
  handle   text COLLATE "C" NOT NULL,
  dangles  boolean NOT NULL,
  key      bigint NOT NULL
);

CREATE INDEX name_mention_by_artifact ON name_mention (artifact);
CREATE INDEX name_mention_by_handle ON name_mention (key, artifact);

-- Links that people state.
CREATE TABLE link (
  source   bigint NOT NULL REFERENCES artifact (id),
  relation text COLLATE "C" NOT NULL,
  target   bigint NOT NULL REFERENCES artifact (id),
  note     text COLLATE "C",
  at       bigint NOT NULL,
  PRIMARY KEY (source, relation, target)
);

CREATE INDEX link_by_target ON link (target);

-- Names that people give to artifacts.
CREATE TABLE tag (
  name     text COLLATE "C" PRIMARY KEY,
  artifact bigint NOT NULL REFERENCES artifact (id),
  at       bigint NOT NULL
);

CREATE INDEX tag_by_artifact ON tag (artifact);

-- Artifacts that must not be removed.
CREATE TABLE pin (
  artifact bigint PRIMARY KEY REFERENCES artifact (id),
  note     text COLLATE "C",
  at       bigint NOT NULL
);

-- What people want to remember of an artifact. `folded` is the text in lower case, in which it is searched.
CREATE TABLE note (
  artifact bigint PRIMARY KEY REFERENCES artifact (id),
  text     text COLLATE "C" NOT NULL,
  folded   bytea NOT NULL,
  at       bigint NOT NULL
);

-- Labels, which many artifacts share.
CREATE TABLE label (
  artifact bigint NOT NULL REFERENCES artifact (id),
  key      text COLLATE "C" NOT NULL,
  value    text COLLATE "C" NOT NULL,
  at       bigint NOT NULL,
  PRIMARY KEY (artifact, key)
);

CREATE INDEX label_by_value ON label (key, value, artifact);

-- Core hashes and capture hashes of what was removed, each with the entry that says so.
CREATE TABLE tombstone (
  digest    bytea NOT NULL CHECK (octet_length(digest) = 32),
  entry     bigint NOT NULL,
  at        bigint NOT NULL,
  core      bytea NOT NULL CHECK (octet_length(core) = 32),
  kind      text COLLATE "C" NOT NULL,
  actor     text COLLATE "C",
  reason    text COLLATE "C",
  remaining bigint NOT NULL,
  size      bigint NOT NULL,
  PRIMARY KEY (digest, entry)
);

CREATE INDEX tombstone_by_core ON tombstone (core);

-- The search index, which a vault has if there is a row in `search_state`. Nothing in these tables is lost with their rows:
-- they are derived from the documents. Their content changes with `VERSION` in src/storage/postgres/full_text and with no
-- migration.

-- Who changes the index holds the lock of the row.
CREATE TABLE search_state (
  id      smallint PRIMARY KEY CHECK (id = 1),
  -- The program makes an index of another version anew.
  version integer NOT NULL,
  -- The last capture that is in the index. None before it is missing.
  capture bigint NOT NULL
);

-- The captures that are in the index, with the number of their passages.
CREATE TABLE search_capture (
  capture  bigint PRIMARY KEY,
  passages integer NOT NULL
);

-- Passages that have words. Those that an artifact's first capture has in the same place are left out of its other captures.
CREATE TABLE search_passage (
  capture bigint NOT NULL,
  number  integer NOT NULL,
  field   text COLLATE "C" NOT NULL,
  -- The words with their places. Nothing if they are too many.
  words   tsvector,
  -- All words, separated by spaces, if they do not fit into `words`: if some are too long, or too many places.
  rest    bytea,
  PRIMARY KEY (capture, number)
);

CREATE INDEX search_passage_by_words ON search_passage USING gin (words);
CREATE INDEX search_passage_with_rest ON search_passage (capture, number) WHERE rest IS NOT NULL;

-- The views that are documented in docs/sql.md, with the names and columns that vaults in files have. Texts are those of the
-- tables: U+0000 and U+0001 are U+0001 followed by U+0002 or U+0003.

CREATE VIEW artifacts AS
  SELECT a.id AS artifact,
         ('sha256:' || encode(a.core, 'hex')) COLLATE "C" AS core_hash,
         k.name AS kind,
         to_char(to_timestamp(a.added_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS added_at,
         to_char(to_timestamp(a.seen_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS seen_at,
         (SELECT count(*) FROM capture c WHERE c.artifact = a.id) AS captures
    FROM artifact a JOIN kind k ON k.id = a.kind;

CREATE VIEW captures AS
  SELECT c.artifact AS artifact,
         ('sha256:' || encode(c.digest, 'hex')) COLLATE "C" AS capture_hash,
         c.size AS size,
         to_char(to_timestamp(c.added_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS added_at,
         to_char(to_timestamp(c.seen_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS seen_at,
         c.source_path AS source_path,
         coalesce(c.signature, 'unsigned') AS signature,
         c.key_id AS key_id,
         coalesce(c.warnings, '[]') AS warnings
    FROM capture c;

CREATE VIEW attributes AS
  -- Several captures can state the same.
  SELECT DISTINCT artifact AS artifact, name AS name, value AS value, number AS number FROM attribute;

CREATE VIEW tags AS
  SELECT artifact AS artifact,
         name AS name,
         to_char(to_timestamp(at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS tagged_at
    FROM tag;

CREATE VIEW notes AS
  SELECT artifact AS artifact,
         text AS note,
         to_char(to_timestamp(at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS noted_at
    FROM note;

CREATE VIEW labels AS
  SELECT artifact AS artifact,
         key AS key,
         value AS value,
         to_char(to_timestamp(at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS labeled_at
    FROM label;

CREATE VIEW pins AS
  SELECT artifact AS artifact,
         note AS note,
         to_char(to_timestamp(at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS pinned_at
    FROM pin;

CREATE VIEW stated_links AS
  SELECT source AS artifact,
         relation AS relation,
         target AS target,
         note AS note,
         to_char(to_timestamp(at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS stated_at
    FROM link;

CREATE VIEW tombstones AS
  SELECT ('sha256:' || encode(digest, 'hex')) COLLATE "C" AS hash,
         ('sha256:' || encode(core, 'hex')) COLLATE "C" AS core_hash,
         kind AS kind,
         to_char(to_timestamp(at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C" AS removed_at,
         actor AS actor,
         reason AS reason,
         entry AS seq
    FROM tombstone;

CREATE VIEW journal_entries AS
  SELECT seq AS seq, entry AS entry, ('sha256:' || encode(chain, 'hex')) COLLATE "C" AS chain FROM journal;
