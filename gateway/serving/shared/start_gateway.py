"""Find the gateway that hosts share, or start it: a process that does not end with the host that started it.

Standard library only. Two locks keep it single: that of the relays is held while one of them starts the gateway, that
of the gateway for as long as it lives, so that the next one waits for the end of one that is ending.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gateway.errors import GatewayError
from gateway.serving.control.records import GatewayRecord, running
from gateway.serving.shared.attach import FOLDERS, shared_key
from gateway.system.file_lock import locked
from gateway.system.runtime_dir import PRIVATE_FILE, own_folder

START_SECONDS = 60.0
"""Time for the gateway to accept hosts."""
FORMER_SECONDS = 20.0
"""Time for one that is ending to be gone."""

_LOOK_SECONDS = 0.1
_LARGEST_ERROR = 16 * 1024
_LARGEST_INTRODUCTION = 256 * 1024

_DETACH = "import os, sys\nif os.fork(): os._exit(0)\nos.setsid()\nos.execv(sys.argv[1], sys.argv[1:])"
"""A child of nobody: hosts end the processes that they have started, and all below those."""


class CannotStart(GatewayError):
    """The shared gateway cannot be started: what it said, and its exit code."""

    def __init__(self, said: str, code: int) -> None:
        super().__init__(said)
        self.code = code


@dataclass(frozen=True)
class SharedGateway:
    """The gateway that hosts with this configuration (an absolute path) share, running or not."""

    config: Path
    key: str
    folder: Path

    @classmethod
    def of(cls, config: Path, environ: Mapping[str, str]) -> "SharedGateway":
        """Return the gateway of a configuration. Raises OSError if there is no private folder for its socket."""
        path = Path(os.path.abspath(config))
        return cls(path, shared_key(path, environ), own_folder())

    def find(self) -> GatewayRecord | None:
        """Return the running gateway; None if there is none."""
        return next((record for record in running() if record.shared == self.key), None)

    def find_or_start(self, introduction: Mapping[str, Any], give_up: Callable[[], bool]) -> GatewayRecord | None:
        """Return the running gateway, started if necessary; None if `give_up` returns true before that.

        `introduction` describes the host, for which the gateway opens its upstreams.

        Raises:
            CannotStart: it ended, or did not start in time.
            OSError: it cannot be run, or its folder cannot be written.
        """
        if (found := self.find()) is not None:
            return found
        try:
            with locked(self._file("start.lock"), START_SECONDS):
                return self.find() or self._start(introduction, give_up)
        except TimeoutError:
            raise CannotStart("the process of another host did not start the shared gateway in time", 1) from None

    @contextmanager
    def alive(self) -> Generator[None]:
        """Be the only gateway with this key inside the context. Raises TimeoutError if there is another one."""
        with locked(self._file("alive.lock"), FORMER_SECONDS):
            yield

    def _file(self, ending: str) -> Path:
        return self.folder / f"shared-{self.key}.{ending}"

    def _start(self, introduction: Mapping[str, Any], give_up: Callable[[], bool]) -> GatewayRecord | None:
        said = self._file("said")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(said, flags, PRIVATE_FILE), "wb") as errors:
            process = _launched(self._command(), self.config.parent, errors)
        outcome = _Outcome(process, introduction)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and not give_up():
            ended = outcome.known.wait(_LOOK_SECONDS)
            # Even if this one ended: another one may have been about to start already.
            if (found := self.find()) is not None:
                return found
            if ended:
                raise CannotStart(_text(said), outcome.code or 1)
        if give_up():
            return None
        raise CannotStart(f"the shared gateway has not started within {START_SECONDS:g} s", 1)

    def _command(self) -> Sequence[str]:
        # -P: the folder in which it runs is not searched for modules.
        return [sys.executable, "-P", "-m", "gateway", "serve", "--shared", "--resident", "--config", str(self.config)]


class _Outcome:
    """How a start turns out: `known` is set when the gateway accepts hosts, or has ended with `code`."""

    def __init__(self, process: subprocess.Popen[bytes], introduction: Mapping[str, Any]) -> None:
        self.known = threading.Event()
        self.code: int | None = None
        threading.Thread(target=self._follow, args=(process, introduction), daemon=True).start()

    def _follow(self, process: subprocess.Popen[bytes], introduction: Mapping[str, Any]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.write(json.dumps(introduction).encode())
        with suppress(OSError):
            process.stdin.close()
        with process.stdout as stdout:
            said = stdout.read(_LARGEST_ERROR).decode("ascii", "replace").split()
        if said[-2:-1] == ["exit"] and said[-1].isdecimal():
            self.code = int(said[-1])
        with suppress(OSError):
            process.wait()
        self.known.set()


def read_introduction() -> Any:
    """Read from stdin, in the process of the gateway, what the relay that has started it says of its host."""
    given = b""
    with suppress(OSError), open(0, "rb", closefd=False) as stdin:
        given = stdin.read(_LARGEST_INTRODUCTION)
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return None


def say_ready() -> None:
    """Tell the relay that hosts can attach, and let go of everything that belongs to the host of that relay."""
    with suppress(OSError):
        os.write(1, b"ready\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def say_ended(code: int) -> None:
    """Tell the relay that has started this process, if it still listens, with which exit code it ends."""
    with suppress(OSError):
        os.write(1, b"exit %d\n" % code)


def _launched(command: Sequence[str], folder: Path, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS
        try:
            return _popen(command, folder, errors, flags | subprocess.CREATE_BREAKAWAY_FROM_JOB)
        except OSError:  # the host's job does not let its processes go
            return _popen(command, folder, errors, flags)
    return _popen([command[0], "-I", "-S", "-c", _DETACH, *command], folder, errors)


def _popen(command: Sequence[str], folder: Path, errors: IO[bytes], flags: int = 0) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=folder,
        env=_environment(os.environ),
        creationflags=flags,
    )


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the gateway: that of its first host, in which paths mean the same in any folder."""
    absolute = {name: os.path.abspath(environ[name]) for name in FOLDERS if environ.get(name)}
    if modules := environ.get("PYTHONPATH"):
        absolute["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in modules.split(os.pathsep) if part)
    return {**environ, **absolute}


def _text(file: Path) -> str:
    """Return the errors of a start, without the word with which each line begins."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - _LARGEST_ERROR))
            lines = opened.read().decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    told = [line.removeprefix("error: ") for line in lines if line.strip()]
    return "\n".join(told) or "the shared gateway ended while it was starting, and did not say why"
