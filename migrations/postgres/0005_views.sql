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
