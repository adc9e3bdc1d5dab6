-- Labels. docs/sql.md explains the view.
--
-- The views of the artifacts of each kind leave the file: the kinds declare them, and they are created for queries. Every
-- process parses all views of the file before it reads anything.

DROP VIEW sessions;
DROP VIEW runs;
DROP VIEW traces;
DROP VIEW contracts;
DROP VIEW packs;

-- The different labels. Many artifacts have the same one.
CREATE TABLE label_value (
  id    INTEGER PRIMARY KEY,
  key   TEXT NOT NULL,
  value TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX label_value_by_key ON label_value (key, value);

-- The labels of artifacts. An artifact has at most one of each key.
CREATE TABLE label (
  artifact INTEGER NOT NULL REFERENCES artifact (id),
  value    INTEGER NOT NULL REFERENCES label_value (id),
  at       INTEGER NOT NULL,
  PRIMARY KEY (artifact, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX label_by_value ON label (value, artifact);

CREATE VIEW labels AS
  SELECT l.artifact AS artifact,
         v.key AS key,
         v.value AS value,
         strftime('%Y-%m-%dT%H:%M:%fZ', l.at / 1000.0, 'unixepoch') AS labeled_at
    FROM label l JOIN label_value v ON v.id = l.value;
