"""What the state of the authorization server needs of an SQL database, and its tables, in SQL that all of them know."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

ResultT = TypeVar("ResultT")

Row = Mapping[str, Any]
"""A row by the names of its columns."""

VERSION = 2
STEPS = (
    """
CREATE TABLE clients (
    id TEXT PRIMARY KEY, metadata TEXT NOT NULL, secret TEXT, created DOUBLE PRECISION NOT NULL,
    approved DOUBLE PRECISION
);
CREATE TABLE approvals (
    id TEXT PRIMARY KEY, client TEXT NOT NULL, client_name TEXT NOT NULL, redirect TEXT NOT NULL,
    principal TEXT NOT NULL, login TEXT NOT NULL, resource TEXT NOT NULL, scope TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL, used DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL
);
CREATE TABLE codes (
    hash TEXT PRIMARY KEY, approval TEXT NOT NULL REFERENCES approvals ON DELETE CASCADE,
    redirect_uri TEXT NOT NULL, challenge TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL, used DOUBLE PRECISION
);
CREATE TABLE tokens (
    hash TEXT PRIMARY KEY, approval TEXT NOT NULL REFERENCES approvals ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('access', 'refresh')), scope TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL,
    used DOUBLE PRECISION
);
CREATE INDEX approvals_of_client ON approvals (client);
CREATE INDEX codes_of_approval ON codes (approval);
CREATE INDEX tokens_of_approval ON tokens (approval)
""",
    """
ALTER TABLE approvals ADD COLUMN claims TEXT NOT NULL DEFAULT '{}';
CREATE TABLE pending (
    hash TEXT PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL
)
""",
)
"""The statements that lead from each version of the tables to the next one, beginning with none."""


class Rows(Protocol):
    """The outcome of a statement."""

    @property
    def rowcount(self) -> int:
        """Number of rows that the statement has changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row; None if there is none."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        ...


class Transaction(Protocol):
    """A transaction that has begun. sqlite3's connection is one."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Run a statement with a `?` for each parameter. A row is read by the names of its columns."""
        ...


class SqlDatabase(Protocol):
    """A database with the tables of `STEPS`."""

    async def run(self, work: Callable[[Transaction], ResultT], *, is_lookup: bool = False) -> ResultT:
        """Do the work in one transaction: alone, unless it is a lookup, which decides nothing that must happen once.

        Raises:
            StateUnavailable: the database cannot be used at present.
        """
        ...

    def check(self) -> None:
        """Look at the start whether it can be used. Raises ConfigError if it never can."""
        ...

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
        ...


def statements_from(version: int) -> Sequence[str]:
    """Return the statements that lead from a version of the tables to the present one."""
    return [one for step in STEPS[version:] for one in step.strip().split(";")]
