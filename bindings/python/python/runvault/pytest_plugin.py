"""A plugin for pytest: the first run of a test records its calls of models, later runs replay them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import pytest

from ._errors import NotRecordedError, UnusedRecordingsError
from ._gateway import FinishedRun, Gateway, GatewayEvent, UnusedRecording
from ._vault import Vault, digest

MODES = ("auto", "record", "replay", "pass")
UNUSED = ("ignore", "fail")

# The labels of recordings.
RECORDING, TEST, RESULT = "recording", "test", "result"

# The limit of the value of a label in bytes.
MAX_LABEL = 1024


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("runvault", "recording and replaying calls of models")
    group.addoption(
        "--runvault-mode",
        choices=MODES,
        help="auto (default): record tests without a recording, replay the others; record: record all again; "
        "replay: never ask a server; pass: forward calls and record nothing",
    )
    group.addoption("--runvault-vault", metavar="PATH", help="the vault with the recordings")
    group.addoption("--runvault-unused", choices=UNUSED, help="what to do about recorded calls that a test did not make")
    parser.addini("runvault_mode", "the default of --runvault-mode", default="auto")
    parser.addini("runvault_vault", "the default of --runvault-vault, relative to the root directory", default="recordings.vault")
    parser.addini("runvault_unused", "the default of --runvault-unused", default="ignore")
    parser.addini("runvault_upstreams", "servers to record from, as NAME=URL", type="linelist", default=[])
    parser.addini("runvault_ignore", "members of requests that are not compared", type="linelist", default=[])
    parser.addini("runvault_normalize", "replacements in requests before they are compared", type="linelist", default=[])
    parser.addini("runvault_redact", "patterns of what is not stored", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "runvault(name=None, *, mode=None, unused=None, upstreams={}, ignore=(), normalize=(), redact=()): record the calls of "
        "models that this test makes on its first run, and replay them after that",
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    vault = config.stash.get(_VAULT, None)
    if vault is not None:
        vault.close()


@dataclass
class Recording:
    """The calls of models by one test: what the fixture `runvault` returns."""

    name: str
    """The name of the recording."""
    mode: Literal["record", "replay", "pass"]
    """What is done with calls in this test."""
    vault: Vault
    """The vault with the recordings."""
    gateway: Gateway
    """The gateway that the clients of this test use."""
    run_pack: str | None
    """The run pack that is replayed."""
    unused: Literal["ignore", "fail"] = "ignore"
    """What to do about recorded calls that the test did not make."""
    _events: list[GatewayEvent] = field(default_factory=list)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables that point clients at the gateway. They are set for this test."""
        return self.gateway.variables()

    @property
    def events(self) -> list[GatewayEvent]:
        """What the gateway has reported so far."""
        self._events += self.gateway.events()
        return self._events

    @property
    def missed(self) -> list[GatewayEvent]:
        """The requests that were not recorded."""
        return [event for event in self.events if event["event"] == "missed"]

    def unused_calls(self) -> list[UnusedRecording]:
        """Returns the recorded calls that were not replayed so far. While the test records, there are none."""
        return [] if self.run_pack is None else self.gateway.replayed()["unused"]


_VAULT = pytest.StashKey[Vault]()
_RECORDING = pytest.StashKey[Recording]()
_PASSED = pytest.StashKey[dict[str, bool]]()


@pytest.fixture(autouse=True)
def _runvault_marked(request: pytest.FixtureRequest) -> None:
    """Starts a gateway for tests that are marked."""
    if request.node.get_closest_marker("runvault") is not None:
        request.getfixturevalue("runvault")


@pytest.fixture
def runvault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recording]:
    """Records the calls of models that the test makes, or replays them if there is a recording."""
    settings = _settings(request)
    mode, name, test = settings["mode"], settings["name"], request.node.nodeid
    vault = _vault(request.config, create=mode != "replay")
    found = _recorded(vault, name) if mode in ("auto", "replay") else None
    if mode == "replay" and found is None:
        raise NotRecordedError(f"{name} was not recorded; --runvault-mode=auto records it", "no-recording")
    doing: Literal["record", "replay", "pass"] = "pass" if mode == "pass" else "record" if found is None else "replay"
    gateway = Gateway.start(
        vault,
        doing,
        recording=found,
        upstreams=settings["upstreams"],
        labels={RECORDING: _label(name), TEST: _label(test)},
        ignore=settings["ignore"],
        normalize=settings["normalize"],
        redact=settings["redact"],
    )
    recording = Recording(name, doing, vault, gateway, found, settings["unused"])
    request.node.stash[_RECORDING] = recording
    for variable, value in recording.variables.items():
        monkeypatch.setenv(variable, value)
    try:
        yield recording
    finally:
        finished = gateway.stop()
        if doing == "record":
            passed = request.node.stash.get(_PASSED, {}).get("call", False)
            _set_result(vault, finished, "passed" if passed else "failed")


def _settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Returns what the marker, the command line and the configuration say, in this order."""
    marker = request.node.get_closest_marker("runvault")
    given = dict(marker.kwargs) if marker else {}
    config = request.config
    known = {"name", "mode", "unused", "upstreams", "ignore", "normalize", "redact"}
    if marker and (len(marker.args) > 1 or not known.issuperset(given)):
        raise pytest.UsageError(f"the marker runvault takes a name and {', '.join(sorted(known - {'name'}))}")

    def chosen(name: str, choices: tuple[str, ...]) -> str:
        # The command line decides about all tests; a test knows better than the configuration.
        value = config.getoption(f"runvault_{name}") or given.get(name) or config.getini(f"runvault_{name}")
        if value not in choices:
            raise pytest.UsageError(f"runvault: {name} is one of {', '.join(choices)}, not {value!r}")
        return str(value)

    upstreams = dict(line.split("=", 1) for line in config.getini("runvault_upstreams"))
    return {
        "name": marker.args[0] if marker and marker.args else given.get("name") or request.node.nodeid,
        "mode": chosen("mode", MODES),
        "unused": chosen("unused", UNUSED),
        "upstreams": {**upstreams, **given.get("upstreams", {})},
        "ignore": [*config.getini("runvault_ignore"), *given.get("ignore", ())],
        "normalize": [*config.getini("runvault_normalize"), *given.get("normalize", ())],
        "redact": [*config.getini("runvault_redact"), *given.get("redact", ())],
    }


def _vault(config: pytest.Config, *, create: bool) -> Vault:
    """Returns the vault, which all tests of a process share."""
    if _VAULT not in config.stash:
        path = config.getoption("runvault_vault") or config.getini("runvault_vault")
        is_address = "://" in path
        config.stash[_VAULT] = Vault.open(path if is_address else config.rootpath / Path(path), create=create)
    return config.stash[_VAULT]


def _recorded(vault: Vault, name: str) -> str | None:
    """Returns the newest recording of this name by a test that passed."""
    labels = {RECORDING: _label(name), RESULT: "passed"}
    found = vault.find(kinds=["rpk"], labels=labels, order="first-seen").first()
    return None if found is None else found["core_hash"]


def _set_result(vault: Vault, finished: list[FinishedRun], result: str) -> None:
    core_hashes = [core for run in finished for core in (*run["run_packs"], *run["sessions"])]
    if core_hashes:
        vault.run("set-labels", {"core_hashes": core_hashes, "labels": {RESULT: result}})


def _label(text: str) -> str:
    """Returns a text as the value of a label: without control characters, and shortened if it is too long."""
    text = "".join(character if character.isprintable() else " " for character in text)
    data = text.encode()
    if len(data) <= MAX_LABEL:
        return text
    end = f" {digest(text)}"
    return data[: MAX_LABEL - len(end)].decode(errors="ignore") + end


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash.setdefault(_PASSED, {})[report.when or ""] = report.passed
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    __tracebackhide__ = True
    try:
        yield
    except Exception as error:
        recording = item.stash.get(_RECORDING, None)
        if recording is None or not recording.missed:
            raise
        traceback = _of_test(error.__traceback__, item.config.rootpath)
        if traceback is None:
            raise _not_recorded(recording) from error
        # Where the client noticed it is of no interest.
        raise _not_recorded(recording).with_traceback(traceback) from None
    recording = item.stash.get(_RECORDING, None)
    if recording is None:
        return
    if recording.missed:
        raise _not_recorded(recording)
    unused = recording.unused_calls() if recording.unused == "fail" else []
    if unused:
        raise _unused(recording, unused)


def _of_test(traceback: TracebackType | None, root: Path) -> TracebackType | None:
    """Returns a traceback with the entries whose files are in a directory, without installed packages."""
    entries = []
    while traceback is not None:
        path = Path(traceback.tb_frame.f_code.co_filename)
        if path.is_relative_to(root) and "site-packages" not in path.parts:
            entries.append(traceback)
        traceback = traceback.tb_next
    for entry in reversed(entries):
        traceback = TracebackType(traceback, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return traceback


def _not_recorded(recording: Recording) -> NotRecordedError:
    lines = [f"{event.get('reason')} ({event.get('provider')} {event.get('path')})" for event in recording.missed]
    what = "a request was not recorded" if len(lines) == 1 else f"{len(lines)} requests were not recorded"
    text = "\n".join([f"{what}: {lines[0]}", *lines[1:]])
    where = f"the recording is {recording.name}, {recording.run_pack}"
    return NotRecordedError(f"{text}\n{where}; --runvault-mode=record replaces it", "not-recorded")


def _unused(recording: Recording, unused: list[UnusedRecording]) -> UnusedRecordingsError:
    lines = [f"step {call['step']}: {call['provider']} {call['endpoint']} {_brief(call['prompt'])}" for call in unused]
    calls = "1 recorded call was" if len(unused) == 1 else f"{len(unused)} recorded calls were"
    where = f"the recording is {recording.name}, {recording.run_pack}"
    return UnusedRecordingsError("\n".join([f"{calls} not made: {lines[0]}", *lines[1:], where]), "unused-recordings")


def _brief(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
