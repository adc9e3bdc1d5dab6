-- Whether the vault is a copy of another one that is not complete. Who writes reads it with the last entry of the journal.
ALTER TABLE head ADD COLUMN is_incomplete boolean NOT NULL DEFAULT false;
