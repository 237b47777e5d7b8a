"""A real Postgres on a loopback port, with passwords. Its data are in a folder of its own, and end with it."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

USER, PASSWORD = "gateway", "a password of postgres"
_OWNER, _OWNERS_PASSWORD = "owner", "the password of the owner"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "80",
    "fsync": "off",
    "full_page_writes": "off",
    "logging_collector": "off",
}


class PostgresServer:
    """Can be stopped and started again, on the same port, with the same data."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._data = self._folder / "data"
        self._process: subprocess.Popen[Any] | None = None
        self._databases = 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._as: dict[str, Any] = {"cwd": self._folder}
        if os.geteuid() == 0:  # which Postgres does not run as
            user = _other_user()
            shutil.chown(self._folder, user)
            self._as |= {"user": user, "group": _group_of(user), "extra_groups": []}
        self._initialize()

    def _initialize(self) -> None:
        password = self._folder / "password"
        password.write_text(f"{_OWNERS_PASSWORD}\n", "utf-8")
        password.chmod(0o644)
        options = ["--pgdata", self._data, "--username", _OWNER, "--pwfile", password, "--auth", "scram-sha-256"]
        kind = ["--encoding", "UTF8", "--locale", "C", "--no-sync"]
        done = subprocess.run(
            [self._programs / "initdb", *options, *kind], **self._as, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-p", str(self.port), *settings],
                **self._as,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + 60
        while True:
            assert self._process.poll() is None, (self._folder / "log").read_text("utf-8")
            try:
                psycopg.connect(self.owners_url("postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                assert time.monotonic() < until, "Postgres does not start"
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """End it and its connections at once."""
        if self._process is not None:
            self._process.send_signal(2)  # "fast": transactions in progress are rolled back
            self._process.wait(30)
            self._process = None

    @property
    def is_running(self) -> bool:
        """Whether it has been started."""
        return self._process is not None

    def remove(self) -> None:
        """Stop it, and remove its data."""
        self.stop()
        shutil.rmtree(self._folder)

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run a statement as the owner of everything."""
        with psycopg.connect(self.owners_url(database), autocommit=True) as connection:
            connection.execute(statement.encode("ascii"))

    def rows(self, query: str, database: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, asked as the owner of everything."""
        with psycopg.connect(self.owners_url(database), autocommit=True) as connection:
            return connection.execute(query.encode("ascii")).fetchall()

    def new_database(self) -> "PostgresDatabaseOfTest":
        """Return an empty database, which belongs to `USER`."""
        self._databases += 1
        name = f"test{self._databases}"
        if self._databases == 1:
            self.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        self.execute(f"CREATE DATABASE {name} OWNER {USER}")
        return PostgresDatabaseOfTest(self, name)

    def owners_url(self, database: str) -> str:
        """The URL of a database for the owner of everything."""
        return self._url(_OWNER, _OWNERS_PASSWORD, database)

    def url(self, database: str) -> str:
        """The URL of a database for `USER`."""
        return self._url(USER, PASSWORD, database)

    def _url(self, user: str, password: str, database: str) -> str:
        return f"postgresql://{user}:{password.replace(' ', '%20')}@127.0.0.1:{self.port}/{database}"


class PostgresDatabaseOfTest:
    """One database of a server."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server = server
        self.name = name
        self.url = server.url(name)


def _other_user() -> str:
    import pwd

    for name in ("postgres", "nobody"):  # the former is made by Debian's package
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise AssertionError("there is no user that Postgres could run as")


def _group_of(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid
