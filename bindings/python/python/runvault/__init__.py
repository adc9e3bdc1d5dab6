"""runvault: a verified, content-addressed archive for AI agent runs."""

from . import _types as types
from ._errors import (
    AmbiguousError,
    BusyError,
    ConflictError,
    DamagedError,
    GatewayError,
    InvalidError,
    KindError,
    NoIndexError,
    NotAVaultError,
    NotFoundError,
    NotRecordedError,
    QueryError,
    ReadOnlyError,
    RejectedError,
    RemovedError,
    RunvaultError,
    UnreadableError,
    UnsupportedError,
    UnusedRecordingsError,
    VaultConnectionError,
    VaultError,
    VaultExistsError,
    VaultNotFoundError,
    VersionError,
)
from ._gateway import FinishedRun, Gateway, GatewayEvent
from ._listing import Listing
from ._player import Player
from ._vault import SqlRows, Vault, digest

__all__ = [
    "AmbiguousError",
    "BusyError",
    "ConflictError",
    "DamagedError",
    "FinishedRun",
    "Gateway",
    "GatewayError",
    "GatewayEvent",
    "InvalidError",
    "KindError",
    "Listing",
    "NoIndexError",
    "NotAVaultError",
    "NotFoundError",
    "NotRecordedError",
    "Player",
    "QueryError",
    "ReadOnlyError",
    "RejectedError",
    "RemovedError",
    "RunvaultError",
    "SqlRows",
    "UnreadableError",
    "UnsupportedError",
    "UnusedRecordingsError",
    "Vault",
    "VaultConnectionError",
    "VaultError",
    "VaultExistsError",
    "VaultNotFoundError",
    "VersionError",
    "digest",
    "types",
]

# Messages and documentation name what programs import, and not the file that it is in.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
