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
