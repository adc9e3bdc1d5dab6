"""Reads a saved SQLite file, and the same tables in a directory of Parquet files, with DuckDB.

Prints what it finds as JSON: the number of rows of each table in the SQLite file; the types of the columns of each Parquet
file; and for each table the number of rows that only one of both has.
"""

import json
import sys
from pathlib import Path

import duckdb
import duckdb_extension_sqlite_scanner as scanner

saved, parquet, *tables = sys.argv[1:]
connection = duckdb.connect()
[extension] = (Path(scanner.__file__).parent / "extensions").glob("*/*.duckdb_extension")
connection.execute(f"LOAD '{extension}'")
connection.execute(f"ATTACH '{saved}' AS saved (TYPE sqlite, READ_ONLY)")


def number(query):
    return connection.execute(query).fetchone()[0]


def as_saved(column, sort):
    """Returns the expression for a column of a Parquet file as it is in SQLite."""
    if sort == "TIMESTAMP":
        return f"""strftime("{column}", '%Y-%m-%dT%H:%M:%S.%gZ')"""
    return f'CAST("{column}" AS VARCHAR)' if sort == "JSON" else f'"{column}"'


found = {"rows": {}, "types": {}, "differences": {}}
for table in tables:
    found["rows"][table] = number(f'SELECT count(*) FROM saved."{table}"')
    if not parquet:
        continue
    file = f"'{parquet}/{table}.parquet'"
    types = {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {file}").fetchall()}
    found["types"][table] = types
    here = f"SELECT {', '.join(as_saved(*column) for column in types.items())} FROM {file}"
    names = ", ".join(f'"{name}"' for name in types)
    there = f'SELECT {names} FROM saved."{table}"'
    found["differences"][table] = sum(
        number(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})") for one, other in [(here, there), (there, here)]
    )
print(json.dumps(found))
