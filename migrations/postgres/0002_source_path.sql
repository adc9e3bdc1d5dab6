-- The path or name of what a capture was read from, when it was first added.
ALTER TABLE capture ADD COLUMN source_path text COLLATE "C";
