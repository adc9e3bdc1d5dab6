"""What somebody would write by hand to archive sessions: one SQLite file, one commit, standard library only.

usage: by_hand.py DIRECTORY DATABASE

Reads every file, checks what can be checked in a few lines, computes a core hash, and stores body, mentions and
attributes.
"""

import hashlib
import json
import os
import re
import sqlite3
import sys
import zlib

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE artifact (id INTEGER PRIMARY KEY, core BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE body (digest BLOB PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE mention (artifact INTEGER NOT NULL, role TEXT NOT NULL, place INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE INDEX mention_by_digest ON mention (digest);
CREATE TABLE attribute (artifact INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL);
CREATE INDEX attribute_by_value ON attribute (name, value);
"""

VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
CORE = ("model_io_schema_version", "adapter_id", "model_id", "mode")
INTERACTION = ("i", "prompt_hash", "response_hash", "response_content")


def files(directory):
    for root, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            yield os.path.join(root, name)


def checked(session):
    assert VERSION.fullmatch(session["model_io_schema_version"])
    assert session["adapter_id"] and session["model_id"]
    assert session["mode"] in ("record", "replay")
    assert len(session["interactions"]) <= 10_000
    for number, interaction in enumerate(session["interactions"]):
        assert interaction["i"] == number
        assert DIGEST.fullmatch(interaction["prompt_hash"])
        content = interaction["response_content"].encode()
        assert interaction["response_hash"] == "sha256:" + hashlib.sha256(content).hexdigest()
    return session


def core_hash(session):
    core = {name: session[name] for name in CORE}
    core["interactions"] = [{name: one[name] for name in INTERACTION} for one in session["interactions"]]
    text = json.dumps(core, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).digest()


def add(database, document):
    session = checked(json.loads(document))
    body = hashlib.sha256(document).digest()
    database.execute("INSERT OR IGNORE INTO body VALUES (?, ?)", (body, zlib.compress(document, 1)))
    row = database.execute("INSERT INTO artifact (core, body) VALUES (?, ?)", (core_hash(session), body))
    artifact = row.lastrowid
    mentions = [
        (artifact, role, number, bytes.fromhex(interaction[role][7:]))
        for number, interaction in enumerate(session["interactions"])
        for role in ("prompt_hash", "response_hash")
    ]
    database.executemany("INSERT INTO mention VALUES (?, ?, ?, ?)", mentions)
    attributes = [(artifact, name, session[name]) for name in CORE[1:]]
    database.executemany("INSERT INTO attribute VALUES (?, ?, ?)", attributes)


def main(directory, path):
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    with database:
        for file in files(directory):
            with open(file, "rb") as document:
                add(database, document.read())
    database.close()


main(*sys.argv[1:])
