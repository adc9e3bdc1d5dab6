"""Checks the journal of a vault with nothing of runvault's: docs/journal.md says how it is chained.

usage: verify_journal.py VAULT [DIGEST]

DIGEST is a head that was written down earlier; without it, the chain alone is checked.
"""

import hashlib
import pathlib
import sqlite3
import sys

if len(sys.argv) not in (2, 3):
    sys.exit(__doc__)
chain, head, found = bytes(32), 0, None
wanted = sys.argv[2].removeprefix("sha256:").lower() if len(sys.argv) == 3 else None
database = sqlite3.connect(pathlib.Path(sys.argv[1]).absolute().as_uri() + "?mode=ro", uri=True)
if wanted == chain.hex():
    found = 0
for seq, entry, stated in database.execute("SELECT seq, entry, chain FROM journal_entries ORDER BY seq"):
    if seq != head + 1:
        sys.exit(f"entry {head + 1} is missing")
    chain = hashlib.sha256(chain + entry.encode()).digest()
    if stated != "sha256:" + chain.hex():
        sys.exit(f"entry {seq} was changed, or what comes before it")
    head = seq
    if wanted == chain.hex():
        found = seq
print(f"{head} entries, all chained; the head is sha256:{chain.hex()}")
if wanted is not None and found is None:
    sys.exit(f"{wanted} was never the head of this journal")
if found is not None:
    print(f"it was {wanted} after entry {found}")
