"""The state of the authorization server in Postgres, which several gateways may share.

Transactions run in worker threads (psycopg's own asynchronous connections do not run on each event loop of Windows), on
a bounded number of connections, which stay open. Work that decides something is done alone: it holds an advisory lock
of the database, so that, as with SQLite, each transaction sees what all others before it have done. Lookups do not
wait.

Nothing is set for a session, and nothing is prepared on the server, so a pooler such as PgBouncer may stand between.
"""

import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
from anyio import to_thread

from gateway.config.secrets import hide, longest_first
from gateway.core.fact_words import plain
from gateway.core.model.format_versions import newer_than
from gateway.errors import ConfigError
from gateway.serving.authorization.sql_database import VERSION, Rows, Transaction, statements_from
from gateway.serving.databases.availability import Availability
from gateway.system.extras import install_extra

if TYPE_CHECKING:
    import psycopg

ResultT = TypeVar("ResultT")

SCHEMA = "mcp_gateway_authorization"
"""The schema of the database in which the tables are."""

_CONNECTIONS = 8
"""Maximum number of connections; beyond it, work waits for one."""
_CONNECT_SECONDS = 3
_STATEMENT_SECONDS = 5
"""Time for a statement, to wait for a lock, and for a transaction to stand still, as the server measures them."""
_TRANSACTION_SECONDS = 10.0
"""Time for a transaction, after which a server that does not answer at all is given up."""
_SHORTEST_SECRET = 4
"""Characters of a password that is hidden: a shorter one would be found within other words."""
_MOST_SAID = 10_000
_LONGEST_WORDS = 1_000
"""Characters of an error: what is said before, and what is logged."""
_LOCK = 0x6D63702D67617465
"""The key of the advisory lock; in ASCII, "mcp-gate"."""

_BEGIN = (
    f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'; SET LOCAL lock_timeout = '{_STATEMENT_SECONDS}s'; "
    f"SET LOCAL idle_in_transaction_session_timeout = '{_STATEMENT_SECONDS}s'; SET LOCAL search_path = {SCHEMA}"
).encode("ascii")
_ALONE = _BEGIN + f"; SELECT pg_advisory_xact_lock({_LOCK})".encode("ascii")


class PostgresDatabase:
    """Database at a URL: `postgresql://USER:PASSWORD@HOST/DATABASE`, with the parameters that libpq knows.

    Raises:
        ConfigError: psycopg is not installed, or takes no such URL.
    """

    def __init__(self, url: str) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError:
            raise _fault(
                "needs a package that is not installed", f"install the extra postgres: `{install_extra('postgres')}`"
            ) from None
        try:
            password = conninfo_to_dict(url).get("password")
        except psycopg.ProgrammingError:  # its words may have parts of the password
            raise _fault(
                "is not the URL of a Postgres",
                'write it as "postgresql://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full"',
            ) from None
        self._url = url
        self._secrets = longest_first([str(password or "")], _SHORTEST_SECRET)
        self._idle: deque[psycopg.Connection[Any]] = deque()
        self._at_once = anyio.CapacityLimiter(_CONNECTIONS)
        self._availability = Availability()
        self._is_prepared = False

    async def run(self, work: Callable[[Transaction], ResultT], *, is_lookup: bool = False) -> ResultT:
        """Do the work in one transaction, in a worker thread.

        Raises:
            StateUnavailable: the database cannot be reached, or does not do what is asked.
        """

        def run() -> ResultT:
            return self._run(work, _BEGIN if is_lookup else _ALONE)

        return await to_thread.run_sync(run, limiter=self._at_once)

    def _run(self, work: Callable[[Transaction], ResultT], begin: bytes) -> ResultT:
        import psycopg

        try:
            try:
                result = self._tried(work, begin)
            except (_NothingBegun, psycopg.errors.UndefinedTable):
                # The server has closed connections meanwhile, or has another database: nothing has been done yet.
                self.close()
                self._is_prepared = False
                result = self._tried(work, begin)
        except (psycopg.Error, OSError, _NothingBegun) as error:
            raise self._availability.lost(self._words(error)) from error
        self._availability.found()
        return result

    def _tried(self, work: Callable[[Transaction], ResultT], begin: bytes) -> ResultT:
        """Do the work on an idle connection, or else on a new one. A connection with an error is closed."""
        import psycopg

        try:
            connection, is_new = self._idle.pop(), False
        except IndexError:
            connection, is_new = self._connected(), True
        deadline = _cutting_off(connection, _TRANSACTION_SECONDS)
        deadline.start()
        try:
            if not self._is_prepared:
                _prepare(connection)
                self._is_prepared = True
            try:
                connection.execute(begin)
            except psycopg.OperationalError as error:
                if is_new or not connection.broken:
                    raise
                raise _NothingBegun(*error.args) from error
            result = work(_QuestionMarks(connection))
            connection.commit()
        except BaseException:
            connection.close()
            raise
        finally:
            deadline.cancel()
        self._idle.append(connection)
        return result

    def _connected(self) -> "psycopg.Connection[Any]":
        import psycopg
        from psycopg.rows import dict_row

        connection: psycopg.Connection[Any] = psycopg.Connection[Any].connect(
            self._url,
            connect_timeout=_CONNECT_SECONDS,
            fallback_application_name="mcp-gateway",
            prepare_threshold=None,
            row_factory=cast("Any", dict_row),
        )
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return connection

    def check(self) -> None:
        """Look whether Postgres answers. If it does not, the gateway starts, and answers 503 until it does.

        Raises:
            ConfigError: it has tables of a newer gateway, or none can be made in it.
        """
        import psycopg

        try:
            self._tried(lambda sql: sql.execute("SELECT 1").fetchone(), _BEGIN)
        except (psycopg.ProgrammingError, psycopg.NotSupportedError) as error:
            raise _fault(
                f"cannot be used: {self._words(error)}",
                f"let its user create the schema {SCHEMA} (GRANT CREATE ON DATABASE), or own it",
            ) from error
        except (psycopg.Error, OSError) as error:
            self._availability.lost(self._words(error))

    def _words(self, error: Exception) -> str:
        """Return what Postgres or libpq says, in one line. It names host and user, and no password.

        A server that asks for the password as it is may repeat it, as it may be of any length.
        """
        return plain(hide(str(error)[:_MOST_SAID], self._secrets), _LONGEST_WORDS) or type(error).__name__

    def close(self) -> None:
        """Close the idle connections; the next use opens one again."""
        while self._idle:
            with suppress(IndexError):  # another thread has taken it
                self._idle.pop().close()


class _NothingBegun(Exception):
    """A connection was lost before anything was done on it."""


class _QuestionMarks:
    """A transaction whose statements have a `?` for each parameter, where psycopg has `%s`."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Rows:
        return self._connection.execute(statement.replace("?", "%s").encode("ascii"), parameters)


def _cutting_off(connection: "psycopg.Connection[Any]", seconds: float) -> threading.Timer:
    """Return a timer, not started, that ends a connection: libpq waits for an answer without end."""

    def cut_off() -> None:
        import psycopg

        # The thread that waits for the connection is the one to close it; this wakes it up.
        with (
            suppress(psycopg.Error, OSError, ValueError),
            socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as same,
        ):
            same.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut_off)
    timer.daemon = True
    return timer


def _prepare(connection: "psycopg.Connection[Any]") -> None:
    """Make the tables, or bring them up to date. Raises psycopg.Error."""
    import psycopg

    connection.execute(_ALONE)
    if _one(connection, "SELECT to_regclass(?) AS one", f"{SCHEMA}.version") is None:
        if _one(connection, "SELECT to_regnamespace(?) AS one", SCHEMA) is None:
            connection.execute(f"CREATE SCHEMA {SCHEMA}".encode("ascii"))
        connection.execute("CREATE TABLE version (number INTEGER NOT NULL)")
        connection.execute("INSERT INTO version VALUES (0)")
    version = _one(connection, "SELECT number AS one FROM version")
    if (words := newer_than(VERSION, version)) is not None:
        raise psycopg.NotSupportedError(words)
    for statement in statements_from(version):
        connection.execute(statement.encode("ascii"))
    connection.execute("UPDATE version SET number = %s", (VERSION,))
    connection.commit()


def _one(connection: "psycopg.Connection[Any]", query: str, *parameters: Any) -> Any:
    return _QuestionMarks(connection).execute(query, parameters).fetchone()["one"]


def _fault(words: str, remedy: str) -> ConfigError:
    return ConfigError(words, where="access.authorization_server.state", remedy=remedy)
