-- The paths that captures were read from. docs/sql.md explains the views.

-- The path or name of what the capture was read from, if the addition recorded one.
ALTER TABLE journal ADD COLUMN source_path TEXT CHECK (source_path IS NULL OR core IS NOT NULL);

-- The entry of the journal that has the path of the capture. Paths are stored there only, where the chain proves them.
ALTER TABLE capture ADD COLUMN source_entry INTEGER;

DROP VIEW captures;
DROP VIEW journal_entries;

CREATE VIEW captures AS
  SELECT c.artifact AS artifact,
         'sha256:' || lower(hex(coalesce(c.digest, b.digest))) AS capture_hash,
         c.size AS size,
         strftime('%Y-%m-%dT%H:%M:%fZ', c.added_at / 1000.0, 'unixepoch') AS added_at,
         strftime('%Y-%m-%dT%H:%M:%fZ', c.seen_at / 1000.0, 'unixepoch') AS seen_at,
         j.source_path AS source_path,
         coalesce(s.state, 'unsigned') AS signature,
         s.key_id AS key_id,
         coalesce(c.warnings, '[]') AS warnings
    FROM capture c LEFT JOIN blob b ON b.id = c.blob LEFT JOIN signature s ON s.capture = c.id
         LEFT JOIN journal j ON j.seq = c.source_entry;

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
           ',"size":' || j.size ||
           CASE WHEN j.source_path IS NULL THEN '' ELSE ',"source_path":' || json_quote(j.source_path) END || '}') AS entry,
         'sha256:' || lower(hex(j.chain)) AS chain
    FROM journal j LEFT JOIN kind k ON k.id = j.kind LEFT JOIN actor a ON a.id = j.actor;
