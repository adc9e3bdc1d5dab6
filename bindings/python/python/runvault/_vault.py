"""Vaults."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import _native
from . import _types as t
from ._errors import RejectedError
from ._listing import Listing, Page
from ._operations import Operations
from ._player import Player

if TYPE_CHECKING:
    from typing import Self

StrPath: TypeAlias = "str | os.PathLike[str]"
Document: TypeAlias = "bytes | bytearray | memoryview"
Scalar: TypeAlias = "int | float | str | bytes | None"
Time: TypeAlias = "str | datetime.datetime"
Order: TypeAlias = Literal["last-seen", "first-seen", "created", "core", "kind"]
TimeName: TypeAlias = Literal["last-seen", "first-seen", "created", "finished"]

# Matches beyond a page are counted up to this number anyway, so smaller pages are no faster.
PAGE_SIZE = 1000


def digest(content: bytes | str) -> str:
    """Returns the SHA-256 of bytes, or of a text in UTF-8, as `sha256:` and hex digits."""
    return _native.digest(content.encode() if isinstance(content, str) else content)


class SqlRows(Iterator[tuple[Scalar, ...]]):
    """The rows of a query, which are computed while they are read."""

    def __init__(self, native: _native.SqlRows) -> None:
        self._native = native

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    def __next__(self) -> tuple[Scalar, ...]:
        return next(self._native)

    def to_pandas(self) -> Any:
        """Returns the remaining rows as a data frame. Needs `runvault[pandas]`."""
        import pandas

        return pandas.DataFrame.from_records(list(self), columns=self.columns)


class Vault(Operations):
    """A vault: a verified, content-addressed archive of runs.

    It can be used by several threads at once. As a context manager it is closed at the end.

    An artifact is named by anything that the command line accepts: a hash or its first digits, `@tag`, `latest`,
    `latest~1`, or the id of a run.
    """

    def __init__(self, native: _native.Vault) -> None:
        self._native = native

    @classmethod
    def open(cls, path: StrPath, *, create: bool = False, actor: str | None = None) -> Self:
        """Opens the vault at a path, or at the address of a database.

        `create` creates it if it does not exist; otherwise that raises `VaultNotFoundError`. `actor` is the author of
        journal entries.
        """
        return cls((_native.Vault.open_or_create if create else _native.Vault.open)(path, actor))

    @classmethod
    def create(cls, path: StrPath, *, actor: str | None = None) -> Self:
        """Creates a vault. Raises `VaultExistsError` if there is something."""
        return cls(_native.Vault.create(path, actor))

    @classmethod
    def in_memory(cls) -> Self:
        """Creates an empty vault in memory, without SQL and full-text search."""
        return cls(_native.Vault.in_memory())

    def close(self) -> None:
        """Closes the vault. Its files are closed after what is still running on other threads."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<runvault.Vault closed>" if self._native.is_closed() else f"<runvault.Vault {str(self.path)!r}>"

    @property
    def path(self) -> Path:
        """The path, or the address without a password; empty if it is in memory."""
        return Path(self._native.path())

    def _run(self, name: str, request: str) -> str:
        return self._native.run(name, request)

    def resolve(self, artifact: str) -> str:
        """Returns the core hash of an artifact."""
        return self._native.locate(artifact)[0]

    def get(self, artifact: str) -> bytes:
        """Returns the exact bytes of a document, hashed again.

        Raises `KindError` if it has several files, which `members` returns.
        """
        return self._native.get(artifact)

    def members(self, artifact: str) -> dict[str, bytes]:
        """Returns the files of an artifact by name, hashed again. That of a document has the name ``."""
        return self._native.members(artifact)

    def add(
        self,
        *inputs: StrPath | Document,
        name: str = "",
        kind: str | None = None,
        labels: Mapping[str, str] | None = None,
        note: str | None = None,
        allow_removed: bool = False,
        strict: bool = False,
        source_path: bool = True,
    ) -> list[t.AddedDocument]:
        """Verifies and stores files, directories and documents, and returns what was done with each.

        Documents are bytes, with `name` in reports. One that breaks rules does not stop the others: its outcome is
        `rejected`. Everything that is returned is on disk. A file that cannot be read raises `UnreadableError`, after the
        others were added.
        """
        documents = [one if isinstance(one, (str, os.PathLike)) else (one, name) for one in inputs]
        options = {"kind": kind, "allow_removed": allow_removed, "strict": strict, "source_path": source_path}
        return [json.loads(line) for line in self._native.add(documents, dict(labels or {}), note, options)]

    def add_document(self, document: Document, *, kind: str | None = None, labels: Mapping[str, str] | None = None) -> str:
        """Verifies and stores a document, and returns its core hash. Raises `RejectedError` if it breaks rules."""
        added = self.add(document, kind=kind, labels=labels)[0]
        core_hash = added["core_hash"]
        if added["outcome"] == "rejected" or core_hash is None:
            violations = added["violations"]
            first = f": {violations[0]['message']} (rule {violations[0]['rule_id']})" if violations else ""
            details = {"violations": violations, "violations_omitted": added["violations_omitted"]}
            raise RejectedError(f"the document was rejected{first}", "rejected", details)
        return core_hash

    def find(
        self,
        *,
        prompt: str | None = None,
        mentions: str | None = None,
        kinds: Sequence[str] = (),
        attributes: Mapping[str, str] | None = None,
        labels: Mapping[str, str | None] | None = None,
        tag: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        by: TimeName = "created",
        conditions: Sequence[t.FindCondition] = (),
        order: t.FindOrder = "created",
        all_versions: bool = False,
        details: Sequence[t.Detail] = (),
        limit: int | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[t.FoundArtifact]:
        """Finds artifacts for which everything given holds.

        `prompt` is a text, `mentions` the hash of anything. A label without a value is any value. `conditions` are those of
        the operation `find`.
        """
        criteria = _filter(prompt, mentions, kinds, attributes, labels, tag, (by, since, until), conditions)

        def read(after: Any, limit: int) -> Page[t.FoundArtifact]:
            answer = self.run(
                "find",
                {
                    "filter": criteria,
                    "order": order,
                    "all_versions": all_versions,
                    "details": list(details),
                    "limit": limit,
                    "after": after,
                },
            )
            return Page(answer["hits"], answer.get("next"))

        return Listing(read, limit, page_size)

    def list(
        self,
        *,
        kinds: Sequence[str] = (),
        attributes: Mapping[str, str] | None = None,
        labels: Mapping[str, str | None] | None = None,
        tag: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        by: TimeName = "created",
        conditions: Sequence[t.FindCondition] = (),
        order: t.FindOrder = "created",
        flat: bool = False,
        details: Sequence[t.Detail] = (),
        limit: int | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[t.ListRow]:
        """Lists runs and other artifacts with what they state of models, times and costs.

        The artifacts of one run are one row, unless `flat`.
        """
        criteria = _filter(None, None, kinds, attributes, labels, tag, (by, since, until), conditions)

        def read(after: Any, limit: int) -> Page[t.ListRow]:
            request: t.ListRequest = {
                "filter": criteria,
                "order": order,
                "flat": flat,
                "details": [*details],
                "limit": limit,
                "after": after,
            }
            answer = self.run("list", request)
            return Page(answer["rows"], answer.get("next"))

        return Listing(read, limit, page_size)

    def search(
        self,
        words: str,
        *,
        fields: Sequence[str] = (),
        kinds: Sequence[str] = (),
        every_passage: bool = False,
        limit: int = 20,
        update: bool = True,
    ) -> t.SearchAnswer:
        """Searches the text of artifacts, best match first.

        `update` first adds what is new to the index, and builds it if there is none. Raises `NoIndexError` if there is no index
        and it is not built.
        """
        if update:
            self._native.catch_up_index()
        request: t.SearchRequest = {
            "words": words,
            "fields": [*fields],
            "filter": {"kinds": [*kinds]},
            "every_passage": every_passage,
            "limit": limit,
        }
        return self.run("search", request)

    def build_index(self) -> None:
        """Builds the index of `search`, replacing any existing one."""
        self._native.build_index()

    def links(
        self,
        artifact: str,
        *,
        depth: int = 1,
        relation: str | None = None,
        direction: t.Direction | None = None,
        limit: int | None = None,
    ) -> t.LinksAnswer:
        """Returns the links of an artifact as a graph, whose first node is the artifact."""
        return self.run(
            "links",
            {
                "artifact": self.resolve(artifact),
                "depth": depth,
                "relation": relation,
                "direction": direction,
                "limit": limit,
            },
        )

    def diff(self, one: str, other: str, *, all: bool = False, limit: int | None = None) -> t.DiffAnswer:
        """Compares two artifacts of one kind. `all` includes what varies between identical runs."""
        sides = (self._compared(one), self._compared(other))
        return self.run("diff", {"one": sides[0], "other": sides[1], "all": all, "limit": limit})

    def _compared(self, artifact: str) -> t.ComparedArtifact:
        core_hash, capture_hash, is_capture = self._native.locate(artifact)
        return {"core_hash": core_hash, "capture_hash": capture_hash if is_capture else None}

    def replay(
        self,
        prompt: str,
        *,
        artifact: str | None = None,
        occurrence: int | None = None,
        call: int | None = None,
    ) -> t.ReplayAnswer:
        """Returns the recorded response to a prompt: in an artifact, or in the recording that was last seen.

        Raises `NotRecordedError` if there is none.
        """
        request: t.ReplayRequest = {"prompt": digest(prompt), "occurrence": occurrence, "call": call}
        if artifact is not None:
            core_hash, capture_hash, is_capture = self._native.locate(artifact)
            request["artifact"] = core_hash
            request["capture_hash"] = capture_hash if is_capture else None
        return self.run("replay", request)

    def player(
        self, artifact: str, *, mode: Literal["lookup", "sequential"] = "lookup", repeat: bool = False
    ) -> Player:
        """Returns a player of a recorded session or run.

        `repeat` repeats the last response to a request that is made more often than it was recorded.
        """
        return Player(self._native.player(artifact, mode == "sequential", repeat))

    def sql(self, query: str, parameters: Mapping[str, Scalar] | None = None) -> SqlRows:
        """Runs an SQL query that only reads. A parameter `:name` has the value of `name`.

        Raises `UnsupportedError` if the engine of the vault has no SQL; `has_sql` says so before.
        """
        return SqlRows(self._native.sql(query, dict(parameters or {})))

    @property
    def has_sql(self) -> bool:
        """Whether SQL queries are possible."""
        return self._native.has_sql()


# Inside the class, `list` is a method.
_Strings: TypeAlias = "Sequence[str]"


def _filter(
    prompt: str | None,
    mentions: str | None,
    kinds: _Strings,
    attributes: Mapping[str, str] | None,
    labels: Mapping[str, str | None] | None,
    tag: str | None,
    period: tuple[TimeName, Time | None, Time | None],
    conditions: Iterable[t.FindCondition],
) -> t.ArtifactFilter:
    wanted: list[t.FindCondition] = []
    if prompt is not None:
        wanted.append({"type": "mention", "group": "prompt", "digest": digest(prompt)})
    if mentions is not None:
        wanted.append({"type": "mention", "digest": mentions})
    for name, value in (attributes or {}).items():
        wanted.append({"type": "attribute", "name": name, "value": value})
    for key, text in (labels or {}).items():
        wanted.append({"type": "label", "key": key, "value": text})
    if tag is not None:
        wanted.append({"type": "tagged", "name": tag})
    criteria: t.ArtifactFilter = {"kinds": [*kinds], "conditions": [*wanted, *conditions]}
    by, since, until = period
    if since is not None or until is not None:
        criteria["period"] = {"by": by, "since": _time(since), "until": _time(until)}
    return criteria


def _time(time: Time | None) -> str | None:
    if not isinstance(time, datetime.datetime):
        return time
    if time.tzinfo is None:
        raise ValueError("a time has a time zone, such as datetime.timezone.utc")
    return time.astimezone(datetime.timezone.utc).isoformat()
