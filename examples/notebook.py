"""Asks what `runvault sql --save FILE` wrote, with nothing but Python's own modules.

usage: notebook.py FILE

Prints how the models answered each prompt that was asked more than once. docs/sql.md describes the tables.
"""

import pathlib
import sqlite3
import sys

if len(sys.argv) != 2:
    sys.exit(__doc__)
connection = sqlite3.connect(pathlib.Path(sys.argv[1]).absolute().as_uri() + "?mode=ro", uri=True)
connection.row_factory = sqlite3.Row

ANSWERS = """
    SELECT i.prompt_hash, s.model_id, i.response_content
      FROM interactions i JOIN sessions s USING (artifact)
     WHERE i.prompt_hash IN (SELECT prompt_hash FROM interactions GROUP BY prompt_hash HAVING count(*) > 1)
     ORDER BY i.prompt_hash, s.model_id, i.artifact, i.i
"""

# With pandas: pandas.read_sql_query(ANSWERS, connection).pivot_table(…)
answers = {}
for row in connection.execute(ANSWERS):
    answers.setdefault(row["prompt_hash"], []).append((row["model_id"], row["response_content"]))

for prompt, given in answers.items():
    agree = "the same answer" if len({response for _, response in given}) == 1 else "different answers"
    print(f"{prompt[:19]}: asked {len(given)} times, {agree}")
    for model, response in given:
        print(f"  {model}: {response!r}")
