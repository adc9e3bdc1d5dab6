-- Bytes in object storage, beside the database.

-- The object storage of the vault; no row if the bytes are in the table `blob`. An object in the storage has the same
-- number, so that another storage is not mistaken for it.
CREATE TABLE blob_store (
  id         smallint PRIMARY KEY CHECK (id = 1),
  vault      bytea NOT NULL CHECK (octet_length(vault) = 16),
  -- Where it was when the vault was created, for messages.
  url        text COLLATE "C" NOT NULL,
  -- Whether the object with the number was written.
  is_claimed boolean NOT NULL
);

-- Objects that have blobs. They are never changed. An object without blobs is deleted, then its row.
CREATE TABLE object (
  name bytea PRIMARY KEY CHECK (octet_length(name) = 16),
  size bigint NOT NULL
);

-- A blob is in `bytes` or in a part of an object. When nothing has a blob in an object any more, it is condemned; its row
-- stays until the object can be deleted.
ALTER TABLE blob ALTER COLUMN bytes DROP NOT NULL;
ALTER TABLE blob ADD COLUMN object bytea REFERENCES object (name);
ALTER TABLE blob ADD COLUMN start bigint;
ALTER TABLE blob ADD COLUMN length bigint;
ALTER TABLE blob ADD COLUMN condemned_at bigint;
ALTER TABLE blob ADD CONSTRAINT blob_is_somewhere
  CHECK ((bytes IS NULL) <> (object IS NULL) AND (object IS NULL) = (start IS NULL) AND (start IS NULL) = (length IS NULL));

CREATE INDEX blob_by_object ON blob (object) WHERE object IS NOT NULL;
CREATE INDEX blob_by_condemnation ON blob (condemned_at) WHERE condemned_at IS NOT NULL;
