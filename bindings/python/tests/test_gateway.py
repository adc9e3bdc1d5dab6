"""Gateways in this process, with the client `openai`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import runvault
from runvault import Gateway, Vault

if TYPE_CHECKING:
    from conftest import Upstream


def ask(gateway: Gateway, prompt: str) -> str:
    body = json.dumps({"model": "m-1", "messages": [{"role": "user", "content": prompt}]}).encode()
    url = gateway.variables()["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def test_calls_are_recorded_and_replayed(tmp_path: Path, upstream: Upstream) -> None:
    vault = Vault.create(tmp_path / "a.vault")
    with Gateway.start(vault, "record", upstreams={"openai": upstream.url}, labels={"suite": "unit"}) as gateway:
        first = ask(gateway, "hello")
        run = gateway.finish()
        assert run is not None and (run["calls"], run["failed"]) == (1, 0)
        assert [event["event"] for event in gateway.events()] == ["recorded", "finished"]
        assert gateway.finish() is None
    upstream.stop()
    assert {hit["core_hash"] for hit in vault.find(labels={"suite": "unit"})} == {run["run_pack"], *run["sessions"]}
    with Gateway.start(vault, "replay", recording=run["run_pack"]) as gateway:
        assert ask(gateway, "hello") == first
        with pytest.raises(urllib.error.HTTPError) as missed:
            ask(gateway, "changed")
        assert 'recorded "hello", requested "changed"' in json.load(missed.value)["detail"]
        events = gateway.events()
        assert [event["event"] for event in events] == ["replayed", "missed"]
        assert events[0]["core_hash"] == run["run_pack"]
        assert 'recorded "hello", requested "changed"' in events[1]["reason"]
    assert gateway.stop() == []
    with pytest.raises(runvault.GatewayError, match="has stopped"):
        gateway.finish()


def test_only_clients_that_replay_get_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "mine")
    vault = Vault.create(tmp_path / "a.vault")
    with Gateway.start(vault, "replay") as gateway:
        variables = gateway.variables()
        assert variables["OPENAI_API_KEY"] == "runvault-replay" and "ANTHROPIC_API_KEY" not in variables
    with Gateway.start(vault, "auto") as gateway:
        assert "OPENAI_API_KEY" not in gateway.variables()
        assert gateway.variables()["ANTHROPIC_BASE_URL"] == f"http://{gateway.address}/anthropic"


def test_options_that_are_not_valid_raise(tmp_path: Path) -> None:
    vault = Vault.create(tmp_path / "a.vault")
    for options in ({"address": "nowhere"}, {"redact": ["("]}, {"normalize": ["s/a/b"]}, {"upstreams": {"openai": "ftp://x"}}, {"idle": -1.0}):
        with pytest.raises(runvault.InvalidError):
            Gateway.start(vault, **options)
    with pytest.raises(runvault.InvalidError, match="no mode"):
        Gateway.start(vault, "other")  # type: ignore[arg-type]
    with pytest.raises(runvault.NotRecordedError):
        Gateway.start(vault, "replay", recording="latest")
    with pytest.raises(runvault.InvalidError, match="spool"):
        Gateway.start(Vault.in_memory())
    with Gateway.start(Vault.in_memory(), "record", spool=tmp_path / "calls") as gateway:
        assert gateway.address.startswith("127.0.0.1:")
