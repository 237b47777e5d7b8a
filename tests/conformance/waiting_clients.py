"""A process that has imported the clients, and forks one for each that the suite starts: see `hand_over`.

    python -m tests.conformance.waiting_clients SOCKET

Each client is a process of its own, as if it had been started: nothing of one is left for the next.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from tests.conformance import client, oauth_client

ROOT = Path(__file__).parents[2]
CLIENTS: dict[str, ModuleType] = {module.__name__: module for module in (client, oauth_client)}
PATIENCE = 60


@contextmanager
def waiting_clients() -> Generator[Path]:
    """Have clients wait until the block is left: the socket that reaches them.

    Raises:
        RuntimeError: they did not start; what they said is on stderr.
    """
    # A path of its own, since the address of a socket has at most a hundred characters.
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        path = Path(folder) / "socket"
        started = [sys.executable, "-m", "tests.conformance.waiting_clients", str(path)]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(started, env=environ, start_new_session=True) as process:
            try:
                deadline = time.monotonic() + PATIENCE
                while not path.exists():
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError("the clients did not start")
                    time.sleep(0.05)
                yield path
            finally:
                os.killpg(process.pid, signal.SIGTERM)  # and clients that the suite has given up


def main() -> None:
    """Fork for everyone who connects, until terminated."""
    # The forks are nobody's to wait for: each says itself how it ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    path = Path(sys.argv[1])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        bound = path.with_suffix(".new")
        listener.bind(str(bound))
        listener.listen()
        bound.rename(path)  # it appears when it can be connected to
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    os._exit(_serve(connection))


def _serve(connection: socket.socket) -> int:
    """Be the client that was asked for, and say how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # it waits for the programs that it starts
    length, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as reading:
        asked = json.loads(reading.read(int.from_bytes(length, "big")))
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = [asked["module"], *asked["arguments"]]
    code = _run(CLIENTS[asked["module"]])
    connection.sendall(bytes([code]))
    return code


def _run(module: ModuleType) -> int:
    """Run a client's `main`, and return the exit code that its process would have."""
    try:
        module.main()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:  # as at the end of a program
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    main()
