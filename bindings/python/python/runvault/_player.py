"""Players of recordings, in place of a model or a tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from . import _native

if TYPE_CHECKING:
    from ._types import RecordedResponse


class Player:
    """Returns the recorded responses of one session or run. The n-th request gets the n-th recording.

    `Vault.player` creates one. A request that was not recorded raises `NotRecordedError`.
    """

    def __init__(self, native: _native.Player) -> None:
        self._native = native

    def respond(self, prompt: str) -> str:
        """Returns the recorded response to a prompt."""
        return self._native.respond(prompt)

    def exchange(self, prompt_hash: str, *, occurrence: int | None = None) -> RecordedResponse:
        """Returns the recorded exchange for the hash of a prompt: the first unused one, or the n-th, counted from 1."""
        return cast("RecordedResponse", json.loads(self._native.respond_to(prompt_hash, occurrence)))

    def call(self, tool: str, arguments: Any) -> RecordedResponse:
        """Returns the recorded exchange for a call of a tool. `arguments` is anything that `json.dumps` accepts."""
        return cast("RecordedResponse", json.loads(self._native.call(tool, json.dumps(arguments))))

    def next(self) -> RecordedResponse:
        """Returns the next recorded exchange, whatever was asked."""
        return cast("RecordedResponse", json.loads(self._native.next_response()))

    def unused(self) -> list[RecordedResponse]:
        """Returns the exchanges that were not played yet."""
        return cast("list[RecordedResponse]", json.loads(self._native.unused()))
