-- The search index, which a vault has if it was built: `index build` creates these tables, and `index drop` drops them.
-- Nothing in them is lost with them. They change with `VERSION` in src/storage/sqlite/search.rs and with no migration; one that
-- touches `capture` drops them.
--
-- The columns of `search_text` are the fields that kinds declare (`formats::fields`), in their order, of which `contract` and
-- `pack` are those of one kind. They are written out here because checks hold the tables of vaults to this text, and storage
-- does not know the kinds; a test compares both.

CREATE TABLE search_state (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  -- The program makes an index of another version anew.
  version INTEGER NOT NULL,
  -- The last capture that is in the index. None before it is missing.
  capture INTEGER NOT NULL,
  -- The number of the next passage.
  next    INTEGER NOT NULL
) STRICT;

-- Which rows of `search_text` are of which capture: the passage n of a capture is the row first + n. Those that an
-- artifact's first capture has in the same place are left out of its other captures.
CREATE TABLE search_capture (
  first    INTEGER PRIMARY KEY,
  capture  INTEGER NOT NULL UNIQUE REFERENCES capture (id),
  passages INTEGER NOT NULL
) STRICT;

-- Words only: texts are read from the documents again. One row for each passage, with its words in the column of its field.
-- The program finds the words (src/storage/full_text) and separates them by spaces, at which this tokenizer splits.
CREATE VIRTUAL TABLE search_text USING fts5 (
  response, prompt, tool, output, step, contract, pack,
  content = '', contentless_delete = 1, tokenize = 'ascii'
);
