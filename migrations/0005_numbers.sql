-- Numbers of attributes, by which artifacts are ordered and compared. docs/sql.md explains the views.

-- The number of a value whose type has an order: milliseconds since 1970 of times, milliseconds of durations, millionths of
-- amounts. Vaults of earlier schemas have none until their derived data is rebuilt, which an upgrade does.
ALTER TABLE attribute_value ADD COLUMN number INTEGER;

CREATE INDEX attribute_value_by_number ON attribute_value (name, number) WHERE number IS NOT NULL;

DROP VIEW sessions;
DROP VIEW runs;
DROP VIEW traces;
DROP VIEW contracts;
DROP VIEW packs;
DROP VIEW attributes;

CREATE VIEW attributes AS
  SELECT a.artifact AS artifact, v.name AS name, v.value AS value, v.number AS number
    FROM attribute a JOIN attribute_value v ON v.id = a.value;

-- If the captures of an artifact state several numbers or times, the largest is here. Of texts that artifacts may have
-- several of, the view `attributes` has all.
CREATE VIEW sessions AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'adapter_id') AS adapter_id,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'model_id') AS model_id,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'mode') AS mode,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'interactions') AS interactions,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'finished_at') AS finished_at,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'duration_ms') AS duration_ms,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'latency_ms') AS latency_ms,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'tokens_input') AS tokens_input,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'tokens_output') AS tokens_output,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'tokens') AS tokens
    FROM artifacts a WHERE a.kind = 'model_io';

CREATE VIEW runs AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'run_id') AS run_id,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'source_run_id') AS source_run_id,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'provider') AS provider,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'agent') AS agent,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'source') AS source,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'capture_mode') AS capture_mode,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'steps') AS steps,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'model_id') AS model_id,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'first_step_at') AS first_step_at,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'last_step_at') AS last_step_at,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'duration_ms') AS duration_ms,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'latency_ms') AS latency_ms,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'tokens_input') AS tokens_input,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'tokens_output') AS tokens_output,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'tokens') AS tokens,
         (SELECT max(t.number) / 1000000.0 FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'cost_usd') AS cost_usd,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'tool_calls') AS tool_calls,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'errors') AS errors,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'os') AS os,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'platform') AS platform,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'redaction_profile') AS redaction_profile
    FROM artifacts a WHERE a.kind = 'rpk';

CREATE VIEW traces AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'trace_id') AS trace_id,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'engine_version') AS engine_version,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'records') AS records,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'steps') AS steps,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'first_step_at') AS first_step_at,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'finished_at') AS finished_at,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'duration_ms') AS duration_ms,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'errors') AS errors
    FROM artifacts a WHERE a.kind = 'trace';

CREATE VIEW contracts AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'effects') AS effects,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'io_refs') AS io_refs,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at
    FROM artifacts a WHERE a.kind = 'contract';

CREATE VIEW packs AS
  SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'run_id') AS run_id,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'result') AS result,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'policy') AS policy,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'model_mode') AS model_mode,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'kernel_version') AS kernel_version,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'created_at') AS created_at,
         (SELECT max(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'finished_at') AS finished_at,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'duration_ms') AS duration_ms,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'accepted') AS accepted,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'exit_code') AS exit_code,
         (SELECT max(t.number) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'errors') AS errors,
         (SELECT min(t.value) FROM attributes t WHERE t.artifact = a.artifact AND t.name = 'os') AS os
    FROM artifacts a WHERE a.kind = 'pack';
