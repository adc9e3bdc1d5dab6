-- Notes, and views with one row for each artifact of a kind. docs/sql.md explains the views.

-- What people want to remember of an artifact.
CREATE TABLE note (
  artifact INTEGER PRIMARY KEY REFERENCES artifact (id),
  text     TEXT NOT NULL,
  at       INTEGER NOT NULL
) STRICT;

CREATE VIEW notes AS
  SELECT artifact AS artifact,
         text AS note,
         strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS noted_at
    FROM note;

-- Attributes that artifacts of a kind have at most one of are columns here. Of those that may have several, the view
-- `attributes` has all.
CREATE VIEW sessions AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'adapter_id') AS adapter_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'model_id') AS model_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'mode') AS mode,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'interactions')
           AS interactions
    FROM artifacts a WHERE a.kind = 'model_io';

CREATE VIEW runs AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at,
         (SELECT min(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'run_id') AS run_id,
         (SELECT min(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'source_run_id')
           AS source_run_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'provider') AS provider,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'agent') AS agent,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'source') AS source,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'capture_mode') AS capture_mode,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'steps') AS steps
    FROM artifacts a WHERE a.kind = 'rpk';

CREATE VIEW traces AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'trace_id') AS trace_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'engine_version')
           AS engine_version,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'records')
           AS records
    FROM artifacts a WHERE a.kind = 'trace';

CREATE VIEW contracts AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'effects')
           AS effects,
         (SELECT CAST(value AS INTEGER) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'io_refs')
           AS io_refs
    FROM artifacts a WHERE a.kind = 'contract';

CREATE VIEW packs AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'run_id') AS run_id,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'result') AS result,
         (SELECT max(value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'policy') AS policy,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'model_mode') AS model_mode,
         (SELECT value FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'kernel_version')
           AS kernel_version
    FROM artifacts a WHERE a.kind = 'pack';
