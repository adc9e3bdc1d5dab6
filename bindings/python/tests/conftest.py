"""What the tests share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import runvault

pytest_plugins = ["pytester"]

REPOSITORY = Path(__file__).parents[3]
EXAMPLES = REPOSITORY / "examples"


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[runvault.Vault]:
    """A vault with the examples."""
    with runvault.Vault.create(tmp_path / "runs.vault") as vault:
        vault.add(EXAMPLES)
        yield vault


class Upstream:
    """A server with the form of the APIs of the providers, in a process of its own."""

    def __init__(self) -> None:
        script = REPOSITORY / "tests/clients/upstream.py"
        self.process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """A running server."""
    server = Upstream()
    yield server
    server.stop()
