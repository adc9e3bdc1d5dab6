"""Vaults: adding, finding, reading, and errors."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import EXAMPLES

import runvault
from runvault import Vault

SESSION = "sha256:4df877dec7f41a5df08a2e176ed2fd872cfdbda8ab3a83d6d5059a60c4df49f7"
PROMPT = "Which label fits ticket 4711: bug, question or billing?"


def session(number: int) -> bytes:
    """A session with one interaction, as another program would write it."""
    document = json.loads((EXAMPLES / "session.json").read_bytes())
    return json.dumps({**document, "model_id": f"model-{number}"}).encode()


def test_what_is_added_is_found_and_returned_byte_for_byte(tmp_path: Path) -> None:
    document = (EXAMPLES / "session.json").read_bytes()
    with Vault.create(tmp_path / "a.vault") as vault:
        assert vault.add_document(document) == SESSION
        assert vault.get("latest") == document
        assert vault.get("4df877dec7f4") == document
        assert [hit["core_hash"] for hit in vault.find(prompt=PROMPT)] == [SESSION]
        assert list(vault.find(prompt="something else")) == []
        assert repr(vault) == f"<runvault.Vault {str(tmp_path / 'a.vault')!r}>"
    assert repr(vault) == "<runvault.Vault closed>"
    with pytest.raises(runvault.VaultError, match="the vault is closed"):
        vault.get("latest")
    with Vault.open(tmp_path / "a.vault", actor="tests") as vault:
        assert vault.get(SESSION) == document


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_documents_are_any_bytes(make: type) -> None:
    vault = Vault.in_memory()
    assert vault.add_document(make((EXAMPLES / "session.json").read_bytes())) == SESSION


def test_adding_reports_every_document(tmp_path: Path) -> None:
    vault = Vault.in_memory()
    bad = tmp_path / "bad.rpk"
    bad.write_bytes(b"{}")
    added = vault.add(EXAMPLES / "session.json", str(bad), b"neither", name="pasted", labels={"suite": "nightly"})
    assert [(one["path"], one["outcome"]) for one in added[1:]] == [(str(bad), "rejected"), ("pasted", "rejected")]
    assert added[0]["outcome"] == "added" and added[0]["core_hash"] == SESSION
    assert all(one["violations"] for one in added[1:])
    assert [hit["core_hash"] for hit in vault.find(labels={"suite": None})] == [SESSION]
    assert vault.add(EXAMPLES / "session.json")[0]["outcome"] == "present"
    with pytest.raises(runvault.RejectedError) as rejected:
        vault.add_document(b"{}")
    assert rejected.value.violations and rejected.value.kind == "rejected"
    with pytest.raises(runvault.UnreadableError, match="No such file"):
        vault.add(tmp_path / "missing")


def test_errors_are_exceptions_by_kind(vault: Vault, tmp_path: Path) -> None:
    with pytest.raises(runvault.VaultNotFoundError) as missing:
        Vault.open(tmp_path / "missing.vault")
    assert isinstance(missing.value, FileNotFoundError) and missing.value.kind == "missing"
    assert "missing.vault" in str(missing.value)
    with pytest.raises(runvault.VaultExistsError):
        Vault.create(tmp_path / "runs.vault")
    (tmp_path / "text").write_text("not a vault, but long enough to be taken for something else than an empty file")
    with pytest.raises(runvault.NotAVaultError):
        Vault.open(tmp_path / "text")
    with pytest.raises(runvault.NotFoundError):
        vault.get("@no-such-tag")
    # The core hashes of these two begin with the same six digits.
    alike = [vault.add_document(session(number)) for number in (10_055, 10_173)]
    with pytest.raises(runvault.AmbiguousError) as ambiguous:
        vault.get("caea45")
    assert sorted(ambiguous.value.candidates) == sorted(alike)
    pack = vault.find(kinds=["pack"]).first()
    assert pack is not None
    with pytest.raises(runvault.KindError):
        vault.get(pack["core_hash"])
    assert "model_io.json" in vault.members(pack["core_hash"])
    with pytest.raises(runvault.InvalidError, match="unknown field"):
        vault.run("find", {"no_such_member": 1})  # type: ignore[call-overload]
    with pytest.raises(runvault.InvalidError, match="no operation"):
        vault.run("no-such-operation", {})  # type: ignore[call-overload]
    with pytest.raises(runvault.NoIndexError):
        vault.search("export", update=False)
    with pytest.raises(runvault.UnsupportedError):
        Vault.in_memory().sql("SELECT 1")
    copy = pickle.loads(pickle.dumps(missing.value))
    assert (type(copy), str(copy), copy.kind) == (type(missing.value), str(missing.value), "missing")


def test_listings_read_one_page_after_the_other(tmp_path: Path) -> None:
    with Vault.create(tmp_path / "many.vault") as vault:
        documents = [session(number) for number in range(3_000)]
        assert len(vault.add(*documents)) == 3_000
        found = vault.find(page_size=100)
        assert sum(1 for _ in found) == 3_000
        assert len({hit["core_hash"] for hit in found}) == 3_000
        assert [len(page) for page in vault.find(limit=250, page_size=100).pages()] == [100, 100, 50]
        assert list(vault.find(limit=0)) == [] and vault.find(limit=0).first() is None

        def peak(collect: object) -> int:
            tracemalloc.start()
            for _ in [*found] if collect else found:
                pass
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return most

        assert peak(False) * 5 < peak(True)


def test_times_are_given_and_returned_in_utc(vault: Vault) -> None:
    utc = datetime.timezone.utc
    everything = len(list(vault.find()))
    assert len(list(vault.find(since=datetime.datetime(2000, 1, 1, tzinfo=utc), by="last-seen"))) == everything
    assert list(vault.find(until="2000-01-01T00:00:00Z", by="first-seen")) == []
    with pytest.raises(ValueError, match="time zone"):
        vault.find(since=datetime.datetime(2000, 1, 1))


def test_links_differences_search_and_rows(vault: Vault) -> None:
    session_hash = vault.resolve("4df877dec7f4")
    graph = vault.links(session_hash, relation="replays")
    assert graph["nodes"][0]["core_hash"] == session_hash
    assert {edge["relation"] for edge in graph["edges"]} == {"replays"}
    one, other = (hit["core_hash"] for hit in vault.find(kinds=["model_io"], order="core"))
    difference = vault.diff(one, other)
    assert difference["different"] and difference["changes"]
    assert not vault.diff(one, one)["different"]
    vault.build_index()
    hits = vault.search("fix is on its way")["hits"]
    assert {hit["core_hash"] for hit in hits} == {one, other}
    assert "fix is on its way" in hits[0]["text"]
    assert vault.has_sql
    rows = vault.sql("SELECT model_id, i, NULL, 1.5, x'00ff' FROM sessions JOIN interactions USING (artifact) "
                     "WHERE sessions.core_hash = :core ORDER BY i", {"core": session_hash})
    assert rows.columns[:2] == ["model_id", "i"]
    assert [*rows][0] == ("triage-large-2", 0, None, 1.5, b"\x00\xff")
    values = {"a": None, "b": True, "c": 2**40, "d": 0.5, "e": "text", "f": b"bytes"}
    assert [*vault.sql("SELECT :a, :b, :c, :d, :e, :f", values)] == [(None, 1, 2**40, 0.5, "text", b"bytes")]
    with pytest.raises(runvault.QueryError):
        vault.sql("DELETE FROM sessions")
    numbers = vault.sql("WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i FROM n")
    assert [row[0] for row in numbers] == list(range(1, 2_001))


def test_recorded_responses_are_replayed(vault: Vault) -> None:
    answer = vault.replay(PROMPT, artifact=SESSION)
    assert (answer["response"], answer["occurrences"]) == ("bug", 1)
    player = vault.player(SESSION)
    assert player.respond(PROMPT) == "bug"
    assert len(player.unused()) == 2
    with pytest.raises(runvault.NotRecordedError):
        player.respond(PROMPT)
    assert isinstance(pytest.raises(runvault.NotRecordedError, vault.replay, "never asked").value, AssertionError)
    assert vault.player(SESSION, repeat=True, mode="sequential").next()["index"] == 0
    assert vault.player(SESSION).exchange(runvault.digest(PROMPT))["response"] == "bug"


def test_a_vault_is_shared_by_threads(vault: Vault) -> None:
    cores = [hit["core_hash"] for hit in vault.find(kinds=["model_io", "rpk"])]
    expected = {core: vault.get(core) for core in cores}

    def work(number: int) -> bool:
        vault.add_document(session(number))
        core = cores[number % len(cores)]
        return vault.get(core) == expected[core]

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(64)))
    assert len(list(vault.find(attributes={"model_id": "model-63"}))) == 1


ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"


def program(path: Path, text: str) -> subprocess.Popen[str]:
    """Runs a program with a vault."""
    # A shell starts programs in the background with the signal of Ctrl-C ignored.
    handler = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    head = f"import os, signal, threading, runvault\n{handler}\nENDLESS = {ENDLESS!r}\nvault = runvault.Vault.open({str(path)!r})\n"
    return subprocess.Popen([sys.executable, "-c", head + textwrap.dedent(text)], stdout=subprocess.PIPE, text=True)


def test_other_threads_run_while_a_vault_works(vault: Vault) -> None:
    process = program(vault.path, """
        started = threading.Event()
        def query():
            started.set()
            next(vault.sql(ENDLESS))
        threading.Thread(target=query, daemon=True).start()
        started.wait()
        print(len(vault.get("4df877dec7f4")), flush=True)
        os._exit(0)
    """)
    assert process.communicate(timeout=300)[0] == f"{len(vault.get(SESSION))}\n"


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_interrupts_what_would_not_end(vault: Vault) -> None:
    process = program(vault.path, """
        try:
            print("ready", flush=True)
            next(vault.sql(ENDLESS))
        except KeyboardInterrupt:
            print("interrupted", len(list(vault.find())) > 0, flush=True)
            os._exit(0)
    """)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=300)[0] == "interrupted True\n"


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_what_was_added_before_ctrl_c_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.vault"
    Vault.create(path).close()
    process = program(path, f"""
        import json
        document = json.loads(open({str(EXAMPLES / "session.json")!r}).read())
        documents = [json.dumps({{**document, "model_id": str(number)}}).encode() for number in range(20_000)]
        def interrupt():
            while vault.find().first() is None:
                pass
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            vault.add(*documents)
            signal.pause()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    assert process.communicate(timeout=600)[0] == "interrupted\n"
    with Vault.open(path) as vault:
        stored = [json.loads(vault.get(hit["core_hash"]))["model_id"] for hit in vault.find()]
        # Documents are added in order, so what is missing is the end.
        assert sorted(map(int, stored)) == list(range(len(stored))) and stored


def test_listings_are_tables(vault: Vault) -> None:
    pandas = pytest.importorskip("pandas")
    frame = vault.find().to_pandas()
    assert len(frame) == len(list(vault.find()))
    assert str(frame["seen_at"].dtype).startswith("datetime64[") and str(frame["seen_at"].dt.tz) == "UTC"
    assert set(vault.list().to_pandas().columns) >= {"kind"}
    assert isinstance(vault.sql("SELECT 1 AS one").to_pandas()["one"][0].item(), int)
    assert pandas.DataFrame().equals(Vault.in_memory().find().to_pandas())


def test_listings_are_arrow_tables(vault: Vault) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = vault.find().to_arrow()
    assert table.num_rows == len(list(vault.find()))
    assert table.schema.field("seen_at").type == pyarrow.timestamp("ms", tz="UTC")
    times = [hit["seen_at"] for hit in vault.find()]
    assert [time.isoformat() for time in table["seen_at"].to_pylist()] == [
        datetime.datetime.fromisoformat(time).isoformat() for time in times
    ]
