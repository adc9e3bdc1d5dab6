-- References to artifacts that the vault does not have. docs/storage.md explains them.

-- Which lists of mentions to read for them: those of captures that refer to a digest with these first eight bytes, as a
-- number, while no artifact has it. A row is no proof: the list is. No reference to captures: removing one would read all
-- rows. The program fills the table of vaults of earlier schemas.
CREATE TABLE unresolved_reference (
  key     INTEGER NOT NULL,
  capture INTEGER NOT NULL,
  PRIMARY KEY (key, capture)
) STRICT, WITHOUT ROWID;
