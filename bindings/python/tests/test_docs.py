"""The page about Python: its code is run, and its commands print what they are said to print.

With UPDATE_DOCS in the environment, the output of commands is written into the document.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import EXAMPLES, REPOSITORY

import runvault

if TYPE_CHECKING:
    from conftest import Upstream

FENCE = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: str) -> list[tuple[str, str, str]]:
    """Returns the language, the name and the text of every block of code."""
    return [(match[1], match[2] or "", match[3]) for match in FENCE.finditer(document)]


def environment(upstream: Upstream) -> dict[str, str]:
    """Returns an environment with the programs of this interpreter, and the program runvault if it is known."""
    program = os.environ.get("RUNVAULT_BIN")
    paths = [str(Path(sys.executable).parent), *([str(Path(program).parent)] if program else []), os.environ["PATH"]]
    return {
        "PATH": os.pathsep.join(paths),
        "HOME": os.environ.get("HOME", "/"),
        "COLUMNS": "80",
        "OPENAI": upstream.url,
        "OPENAI_API_KEY": "sk-not-a-key",
        "RUNVAULT_VAULT": "runs.vault",
    }


def steady(text: str) -> str:
    """Returns a text without what differs from run to run."""
    text = re.sub(r"in \d+\.\d+s", "in TIME", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)
    return re.sub(r"\b[0-9a-f]{12}\b", "PREFIX", text)


def test_the_examples_for_python_run(tmp_path: Path, upstream: Upstream) -> None:
    pytest.importorskip("openai", reason="openai is not installed")
    pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (tmp_path / "examples").symlink_to(EXAMPLES)
    ran = 0
    for language, name, text in blocks((REPOSITORY / "docs/python.md").read_text(encoding="utf-8")):
        if language != "python" or name.endswith(".py"):
            continue
        ran += 1
        command = [sys.executable, "-c", text]
        if name == "test":
            (tmp_path / "test_document.py").write_text(text)
            setting = f"runvault_upstreams=openai={upstream.url}"
            command = [sys.executable, "-m", "pytest", "-q", "-o", setting, "test_document.py"]
        done = subprocess.run(command, cwd=tmp_path, env=environment(upstream), capture_output=True, text=True)
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    assert ran == 4


@pytest.mark.skipif("RUNVAULT_BIN" not in os.environ, reason="RUNVAULT_BIN does not name the program runvault")
def test_the_agent_is_real(tmp_path: Path, upstream: Upstream) -> None:
    pytest.importorskip("openai", reason="openai is not installed")
    path = REPOSITORY / "docs/python.md"
    document = path.read_text(encoding="utf-8")
    differences, commands = "", 0
    for language, name, text in blocks(document):
        if name.endswith(".py"):
            (tmp_path / name).write_text(text)
        if language != "console":
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            commands += 1
            lines = part.splitlines(keepends=True)
            more = next((n for n, line in enumerate(lines[1:], 1) if not line.startswith("> ")), len(lines))
            expected = "".join(lines[more:])
            command = lines[0] + "".join(line.removeprefix("> ") for line in lines[1:more])
            done = subprocess.run(
                ["sh", "-c", command], cwd=tmp_path, env=environment(upstream), capture_output=True, text=True
            )
            # Messages of `exec` name hashes, and are not shown.
            printed = done.stdout if done.returncode == 0 else f"{done.stdout}{done.stderr}status {done.returncode}\n"
            if steady(printed) != steady(expected):
                differences += f"$ {command}{printed}-- and not\n{expected}\n"
                document = document.replace(f"$ {part}", f"$ {''.join(lines[:more])}{printed}")
    if "UPDATE_DOCS" in os.environ:
        path.write_text(document, encoding="utf-8")
    else:
        assert not differences, f"UPDATE_DOCS=1 writes what the document should say:\n{differences}"
    assert commands > 8, "the agent is missing"
    with runvault.Vault.open(tmp_path / "recordings.vault") as vault:
        newest = vault.find(kinds=["rpk"]).first()
    assert newest is not None
    transcript = served(tmp_path / "recordings.vault", f"artifact/{newest['core_hash']}", environment(upstream))
    assert "You triage support tickets. Be brief." in transcript


def served(vault: Path, page: str, variables: dict[str, str]) -> str:
    """Returns a page of a vault as a browser gets it."""
    command = ["runvault", "--vault", str(vault), "serve"]
    server = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        with urllib.request.urlopen(server.stdout.readline().strip() + page) as answer:
            return str(answer.read().decode())
    finally:
        server.terminate()
        server.communicate()
