-- When artifacts were last seen, what is known of signatures, and the version of what is derived from artifacts.
-- docs/sql.md explains the views.

-- An artifact that is added again is seen again. `arrival` orders artifacts by that: it is the number of the journal's last
-- entry that says that one of the artifact's captures was added or seen, times 2^20, plus the position of the capture in
-- that entry. `seen_at` is the time of that entry.
ALTER TABLE artifact ADD COLUMN arrival INTEGER NOT NULL DEFAULT 0;
ALTER TABLE artifact ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
-- When this capture was last added or seen.
ALTER TABLE capture ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;

CREATE TEMP TABLE last_entry (core BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO last_entry SELECT core, max(seq) FROM journal WHERE core IS NOT NULL GROUP BY core;

UPDATE artifact
   SET arrival = coalesce((SELECT last.seq FROM last_entry last WHERE last.core = artifact.core), 0) << 20,
       seen_at = (SELECT max(c.added_at) FROM capture c WHERE c.artifact = artifact.id);
UPDATE capture SET seen_at = added_at;
DROP TABLE last_entry;

-- One byte form may be a capture of several artifacts, each of another kind.
DROP INDEX capture_by_digest;
CREATE UNIQUE INDEX capture_by_digest ON capture (digest, artifact) WHERE digest IS NOT NULL;

ALTER TABLE tombstone RENAME TO old_tombstone;
-- Core hashes and capture hashes of what was removed, each with the entry that says so. A capture hash that several removed
-- artifacts had has a row for each of them.
CREATE TABLE tombstone (
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  entry  INTEGER NOT NULL REFERENCES journal (seq),
  PRIMARY KEY (digest, entry)
) STRICT, WITHOUT ROWID;
INSERT INTO tombstone SELECT digest, entry FROM old_tombstone;

-- What was added again after it was removed is not removed.
DELETE FROM tombstone WHERE EXISTS
  (SELECT 1 FROM journal r JOIN journal a ON a.core = unhex(substr(r.entry ->> 'core', 8))
    WHERE r.seq = tombstone.entry AND a.seq > r.seq);

-- Artifacts are listed by their arrival, in all or of a kind, and by their addition.
CREATE INDEX artifact_by_arrival ON artifact (arrival);
CREATE INDEX artifact_by_kind_and_arrival ON artifact (kind, arrival);
CREATE INDEX artifact_by_addition ON artifact (added_at);

-- What was found of the signature of a capture that has one. Captures without a signature have no row.
CREATE TABLE signature (
  capture INTEGER PRIMARY KEY REFERENCES capture (id),
  state   TEXT NOT NULL CHECK (state IN ('verified', 'unchecked', 'wrong')),
  -- The key that it was checked with, or that the capture names.
  key_id  TEXT
) STRICT;

-- Which version of the program's rules made what is derived from artifacts: mentions, attributes and names. 0: an older one.
CREATE TABLE derived (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL
) STRICT;

INSERT INTO derived VALUES (1, 0);

DROP VIEW sessions;
DROP VIEW runs;
DROP VIEW traces;
DROP VIEW contracts;
DROP VIEW packs;
DROP VIEW artifacts;
DROP VIEW captures;
DROP VIEW journal_entries;
DROP VIEW tombstones;
DROP TABLE old_tombstone;

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
         'sha256:' || lower(hex(coalesce(c.digest, b.digest))) AS capture_hash,
         c.size AS size,
         strftime('%Y-%m-%dT%H:%M:%fZ', c.added_at / 1000.0, 'unixepoch') AS added_at,
         strftime('%Y-%m-%dT%H:%M:%fZ', c.seen_at / 1000.0, 'unixepoch') AS seen_at,
         coalesce(s.state, 'unsigned') AS signature,
         s.key_id AS key_id,
         coalesce(c.warnings, '[]') AS warnings
    FROM capture c LEFT JOIN blob b ON b.id = c.blob LEFT JOIN signature s ON s.capture = c.id;

-- The text of every entry, whose bytes the chain goes over. Times before 1970 are negative numbers.
CREATE VIEW journal_entries AS
  SELECT j.seq AS seq,
         coalesce(j.entry,
           '{"action":"add",' || CASE WHEN j.actor IS NULL THEN '' ELSE '"actor":' || json_quote(a.name) || ',' END || '"at":"' ||
           strftime('%Y-%m-%dT%H:%M:%S', (j.at - (j.at % 1000 + 1000) % 1000) / 1000, 'unixepoch') ||
           printf('.%03dZ', (j.at % 1000 + 1000) % 1000) ||
           '","capture":"sha256:' || lower(hex(j.capture)) ||
           '","core":"sha256:' || lower(hex(j.core)) ||
           '","kind":' || json_quote(k.name) ||
           ',"size":' || j.size || '}') AS entry,
         'sha256:' || lower(hex(j.chain)) AS chain
    FROM journal j LEFT JOIN kind k ON k.id = j.kind LEFT JOIN actor a ON a.id = j.actor;

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

-- Attributes that artifacts of a kind have at most one of are columns here. Of those that may have several, the view
-- `attributes` has all.
CREATE VIEW sessions AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'adapter_id') AS adapter_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'model_id') AS model_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'mode') AS mode,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'interactions')
           AS interactions,
         (SELECT max(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at
    FROM artifacts a WHERE a.kind = 'model_io';

CREATE VIEW runs AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT min(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'run_id') AS run_id,
         (SELECT min(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'source_run_id')
           AS source_run_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'provider') AS provider,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'agent') AS agent,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'source') AS source,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'capture_mode') AS capture_mode,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'steps') AS steps,
         (SELECT max(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at
    FROM artifacts a WHERE a.kind = 'rpk';

CREATE VIEW traces AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'trace_id') AS trace_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'engine_version')
           AS engine_version,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'records')
           AS records,
         (SELECT max(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at
    FROM artifacts a WHERE a.kind = 'trace';

CREATE VIEW contracts AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'effects')
           AS effects,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'io_refs')
           AS io_refs,
         (SELECT max(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at
    FROM artifacts a WHERE a.kind = 'contract';

CREATE VIEW packs AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'run_id') AS run_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'result') AS result,
         (SELECT max(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'policy') AS policy,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'model_mode') AS model_mode,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'kernel_version')
           AS kernel_version,
         (SELECT max(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at
    FROM artifacts a WHERE a.kind = 'pack';
