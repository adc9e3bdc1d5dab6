"""Gateways: record and replay the calls of model clients."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NotRequired, TypeAlias, TypedDict, cast

from . import _native
from ._errors import InvalidError

if TYPE_CHECKING:
    from typing import Self

    from ._vault import Vault

Mode: TypeAlias = Literal["record", "replay", "auto", "pass"]


class FinishedRun(TypedDict):
    """A run that was stored in the vault."""

    run_id: str
    name: str | None
    run_pack: str
    run_packs: list[str]
    sessions: list[str]
    calls: int
    failed: int


class GatewayEvent(TypedDict):
    """Something that a gateway reports: a call, or a run that was stored."""

    event: Literal["recorded", "replayed", "missed", "not-recorded", "finished", "failed"]
    provider: NotRequired[str]
    path: NotRequired[str]
    status: NotRequired[int]
    core_hash: NotRequired[str]
    """The run pack that the call was replayed from."""
    step: NotRequired[int]
    """The number of the step with the request there."""
    reason: NotRequired[str]
    """What differs from the nearest recorded request, or why something was not stored."""
    run: NotRequired[FinishedRun]


class UnusedRecording(TypedDict):
    """A recording that no call used."""

    core_hash: str
    """The run pack."""
    step: int
    """The number of the step with the request there."""
    provider: str
    endpoint: str
    prompt: str
    """The first 200 characters of what the request is compared by, as JSON."""


class ReplayedCalls(TypedDict):
    """What a run replayed."""

    replayed: int
    """Number of calls that were answered from recordings."""
    missed: int
    """Number of calls that were to be replayed and had no recording."""
    misses: list[str]
    """What the first 100 of them differed in from the nearest recorded request."""
    unused: list[UnusedRecording]
    """The recordings that no call used, in the run packs that were replayed."""


class Gateway:
    """A gateway in this process, at a free port of this machine. As a context manager it is stopped at the end.

    Clients are pointed at it by the environment variables that `variables` returns.
    """

    def __init__(self, native: _native.Gateway, mode: Mode) -> None:
        self._native = native
        self.mode = mode

    @classmethod
    def start(
        cls,
        vault: Vault,
        mode: Mode = "auto",
        *,
        recording: str | None = None,
        upstreams: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
        normalize: Sequence[str] = (),
        redact: Sequence[str] = (),
        pace: Literal["fast", "recorded"] = "fast",
        idle: float = 300.0,
        spool: str | os.PathLike[str] | None = None,
        address: str = "127.0.0.1:0",
    ) -> Self:
        """Starts a gateway.

        `recording` is the only run to replay from: anything that names an artifact. `upstreams` are the URLs of servers by
        the name of the provider. `ignore`, `normalize` and `redact` are rules as on the command line. `spool` is the directory for calls of runs that are not finished; it is beside the vault
        unless given.
        """
        if spool is None:
            if not str(vault.path) or str(vault.path) == "." or "://" in os.fspath(vault.path):
                raise InvalidError("a vault that is not a file needs a directory for calls: spool", "invalid")
            spool = f"{vault.path}-gateway"
        options = {
            "mode": mode,
            "recording": recording,
            "recorded_pace": pace == "recorded",
            "upstreams": dict(upstreams or {}),
            "ignore": list(ignore),
            "normalize": list(normalize),
            "redact": list(redact),
            "labels": dict(labels or {}),
            "spool": spool,
            "idle": idle,
            "address": address,
        }
        return cls(_native.Gateway.start(vault._native, options), mode)

    @property
    def address(self) -> str:
        """The address and port at which it listens."""
        return self._native.address

    def variables(self) -> dict[str, str]:
        """Returns the environment variables that point clients at the gateway.

        If it only replays, keys that are not set get a value that no server accepts: most clients do not start without one.
        """
        variables = {**self._native.variables(), "RUNVAULT_GATEWAY": f"http://{self.address}"}
        if self.mode == "replay":
            keys, value = _native.key_variables()
            variables.update({key: value for key in keys if key not in os.environ})
        return variables

    def events(self) -> list[GatewayEvent]:
        """Returns what the gateway reported since the last call."""
        return cast("list[GatewayEvent]", json.loads(self._native.take_events()))

    def finish(self, run: str | None = None) -> FinishedRun | None:
        """Stores a run, after the calls that are being answered. Without a name, it is that of calls that name none.

        Returns None if nothing was recorded.
        """
        finished = self._native.finish(run)
        return None if finished is None else cast(FinishedRun, json.loads(finished))

    def replayed(self, run: str | None = None) -> ReplayedCalls:
        """Returns what a run that is not finished replayed so far. Without a name, it is that of calls that name none."""
        return cast(ReplayedCalls, json.loads(self._native.replayed(run)))

    def stop(self) -> list[FinishedRun]:
        """Finishes all runs, and stops."""
        return cast("list[FinishedRun]", json.loads(self._native.stop()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
