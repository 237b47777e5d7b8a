"""An index of tools by words, ranked by BM25: a table of SQLite's FTS5, in memory.

SQLite is kept by others, comes with Python, stems words, and weighs columns; the libraries for BM25 alone need numpy,
or are not kept (docs/decisions/tool-search.md).
"""

import threading
from collections.abc import Sequence
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.core.tools.catalogue import Catalogue
from gateway.core.tools.signatures import parameter_words, words_in
from gateway.errors import GatewayError

MOST_WORDS = 64
"""Words of a query that count: the first ones."""

_FILLERS = frozenset(
    "a an and any are as at be by can did do does for from get has have here how i if in into is it me my of on or our "  # noqa: SIM905 - forty lines otherwise
    "please some that the their them there these this to was we what when where which who why will with you".split()
)
"""Words of questions that say nothing about a tool; they count only in a query that has no other."""

_TABLE = "CREATE VIRTUAL TABLE tools USING fts5(name, upstream, description, parameters, tokenize='porter unicode61')"
_WEIGHTS = "8.0, 3.0, 4.0, 1.0"
_LONGEST = 4_000
"""Characters of one description that are indexed."""


class ToolIndex:
    """The tools of a catalogue. May be used in any thread, by one at a time.

    Raises:
        GatewayError: this Python's SQLite has no full-text search.
    """

    def __init__(self, catalogue: Catalogue, names: Sequence[str]) -> None:
        import sqlite3  # here, because most gateways never search

        self._names = tuple(names)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        tools = {str(tool.get("name")): tool for tool in catalogue.tools}
        rows = [_row(catalogue.routes[name].upstream, catalogue.routes[name].tool, tools[name]) for name in self._names]
        try:
            self._database.execute(_TABLE)
        except sqlite3.OperationalError as error:
            raise GatewayError(
                f"tools cannot be searched: {error}", remedy='use a Python with FTS5, or [tool_search] mode = "never"'
            ) from None
        self._database.executemany("INSERT INTO tools VALUES (?, ?, ?, ?)", rows)

    def best(self, query: str, most: int) -> tuple[list[str], int]:
        """Return the names of the tools that have words of the query, best first, and how many have any."""
        given = list(dict.fromkeys(words_in(query)))
        words = ([word for word in given if word not in _FILLERS] or given)[:MOST_WORDS]
        if not words:
            return [], 0
        # Each word in quotes: nothing in a query is an operator.
        asked = " OR ".join(f'"{word}"' for word in words)
        with self._lock:
            (count,) = self._database.execute("SELECT count(*) FROM tools WHERE tools MATCH ?", (asked,)).fetchone()
            found = self._database.execute(
                f"SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, {_WEIGHTS}), rowid LIMIT ?",  # noqa: S608 - constants
                (asked, most),
            ).fetchall()
        return [self._names[row - 1] for (row,) in found], count


def _row(upstream: str, own_name: str, tool: Any) -> tuple[str, str, str, str]:
    description = f"{tool.get('title') or ''} {tool.get('description') or ''}"
    texts = (own_name, upstream, description, " ".join(parameter_words(as_object(tool).get("inputSchema"))))
    name, where, said, parameters = (" ".join(words_in(text[:_LONGEST])) for text in texts)
    return f"{name} {name.replace(' ', '')}", where, said, parameters
