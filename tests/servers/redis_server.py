"""A real Redis on a loopback port, with a password. It keeps nothing."""

import socket
import subprocess
import time
from pathlib import Path

PASSWORD = "a password of redis"


class RedisServer:
    """Can be stopped and started again, on the same port."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--requirepass", PASSWORD, "--dir", self._folder]
        kept_nowhere = ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        log = (self._folder / "redis.log").open("ab")
        with log:
            self._process = subprocess.Popen([self._program, *options, *kept_nowhere], stdout=log, stderr=log)
        until = time.monotonic() + 30
        while True:
            assert self._process.poll() is None, (self._folder / "redis.log").read_text("utf-8")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert time.monotonic() < until, "redis-server does not start"
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """Kill it, and with it all that it knows."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
