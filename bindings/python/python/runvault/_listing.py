"""Listings: pages of artifacts or rows, which are read as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import pandas
    import pyarrow

T = TypeVar("T")

# Names of columns with times in answers. All times are UTC.
_TIMES = ("added_at", "seen_at", "created_at", "finished_at")


class Page(Generic[T]):
    """A page of a listing: its items, and where the next one begins."""

    def __init__(self, items: list[T], after: Any) -> None:
        self.items = items
        self.after = after


class Listing(Iterable[T]):
    """Artifacts or rows in order. Iterating reads one page after the other, so that not all of them are in memory.

    A listing can be iterated several times; each time it reads the vault again.
    """

    def __init__(self, read: Callable[[Any, int], Page[T]], limit: int | None, page_size: int) -> None:
        if page_size < 1:
            raise ValueError("a page has at least one item")
        self._read = read
        self._limit = limit
        self._page_size = page_size

    def pages(self) -> Iterator[list[T]]:
        """Yields the pages."""
        left, after = self._limit, None
        while left is None or left > 0:
            page = self._read(after, self._page_size if left is None else min(left, self._page_size))
            if page.items:
                yield page.items
            if page.after is None:
                return
            after = page.after
            left = None if left is None else left - len(page.items)

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page

    def first(self) -> T | None:
        """Returns the first item, or None if there is none."""
        items = self._read(None, 1).items
        return items[0] if items and self._limit != 0 else None

    def to_arrow(self) -> pyarrow.Table:
        """Returns the items as an Arrow table. Needs `runvault[arrow]`."""
        import pyarrow

        return pyarrow.table({name: _arrow(name, values) for name, values in _columns(self).items()})

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the items as a data frame. Needs `runvault[pandas]`."""
        import pandas

        columns = _columns(self)
        frame = pandas.DataFrame(columns)
        for name in columns:
            if name in _TIMES:
                frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
        return frame


def _arrow(name: str, values: Sequence[Any]) -> pyarrow.Array:
    import datetime

    import pyarrow

    if name not in _TIMES:
        return pyarrow.array(values)
    times = [None if value is None else datetime.datetime.fromisoformat(value) for value in values]
    return pyarrow.array(times, pyarrow.timestamp("ms", tz="UTC"))


def _columns(items: Iterable[Any]) -> dict[str, list[Any]]:
    """Returns the members of the items as columns of equal length, in the order in which they first occur."""
    columns: dict[str, list[Any]] = {}
    for number, item in enumerate(items):
        for name, value in item.items():
            columns.setdefault(name, [None] * number).append(value)
        for values in columns.values():
            if len(values) <= number:
                values.append(None)
    return columns
