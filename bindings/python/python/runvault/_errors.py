"""Exceptions, by kind. All of them are `RunvaultError`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._types import Violation


class RunvaultError(Exception):
    """Any error of runvault.

    `kind` names the exact condition, in lowercase with hyphens, such as `busy`.
    """

    def __init__(self, message: str, kind: str = "other", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.details: dict[str, Any] = details or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.kind, self.details)


class VaultError(RunvaultError):
    """The vault cannot be opened, read or written."""


class VaultNotFoundError(VaultError, FileNotFoundError):
    """The vault does not exist."""

    # OSError has its own way of making a text.
    def __str__(self) -> str:
        return str(self.args[0])


class VaultExistsError(VaultError, FileExistsError):
    """A vault cannot be created because there is something."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotAVaultError(VaultError):
    """What is there is not a vault."""


class VersionError(VaultError):
    """The vault was written by a newer program, or by a build before the first release."""


class DamagedError(VaultError):
    """Stored bytes, the vault or an index are damaged."""


class BusyError(VaultError):
    """Others were using the vault, so that the operation could not run within its timeout."""


class ReadOnlyError(VaultError):
    """The vault cannot be written."""


class VaultConnectionError(VaultError):
    """The server of the vault cannot be reached, or refuses the connection."""


class UnsupportedError(RunvaultError):
    """The engine of the vault, or this version, cannot do this."""


class InvalidError(RunvaultError, ValueError):
    """A value is not valid. Nothing was changed."""


class QueryError(InvalidError):
    """An SQL query is not valid, or does more than reading."""


class NotFoundError(RunvaultError, LookupError):
    """Nothing in the vault has this hash or name."""


class RemovedError(NotFoundError):
    """The artifact was removed."""


class AmbiguousError(RunvaultError, LookupError):
    """Several things in the vault have this name, or hashes that begin with it."""

    @property
    def candidates(self) -> list[str]:
        """The first of their hashes."""
        return list(self.details.get("candidates", []))


class KindError(RunvaultError):
    """The artifact is of another kind than the operation needs."""


class ConflictError(RunvaultError):
    """Artifacts cannot be removed: they are pinned, contained in others, or referenced by others."""


class NoIndexError(RunvaultError):
    """The vault has no search index: `Vault.build_index` creates it."""


class RejectedError(RunvaultError, ValueError):
    """A document breaks rules. Nothing was stored."""

    @property
    def violations(self) -> list[Violation]:
        """The broken rules."""
        return list(self.details.get("violations", []))


class UnreadableError(RunvaultError, OSError):
    """A file cannot be read."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotRecordedError(RunvaultError, AssertionError):
    """A request was not recorded, or an error was recorded in place of a response."""


class UnusedRecordingsError(RunvaultError, AssertionError):
    """A test did not make requests that were recorded for it."""


class GatewayError(RunvaultError):
    """A gateway cannot be started, or cannot store a run."""
