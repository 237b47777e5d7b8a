"""A worker's side of the pipes to its supervisor.

On stdin comes what the supervisor says, a line of JSON each: first the worker's plan, later `{"all_ready": true}`. When
it ends, the supervisor is gone, and the worker stops as on SIGTERM. On stdout the worker says `{"serving": true}` once
its port answers, and `{"ready": true}` once it can take calls; later `{"login": {"upstream": ..., "principal": ...}}`
after each login that a browser has completed at it.
"""

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio

from gateway.serving.http import TcpListener
from gateway.serving.mcp.claim_stdio import claim, nothing, stderr

_LOOK_SECONDS = 0.1
_LONGEST = 64 * 1024


@dataclass(frozen=True)
class WorkerPlan:
    """Which worker of how many, the open port's descriptor and number, and the folder that the workers share.

    `all_ready`: the others have started before.
    """

    number: int
    of: int
    descriptor: int
    port: int
    folder: str
    all_ready: bool = False

    def line(self) -> bytes:
        """Return the plan as it is sent."""
        return json.dumps(asdict(self)).encode() + b"\n"


class Worker:
    """This process as a worker (`gateway.serving.mcp.worker_port.WorkerPort`)."""

    def __init__(self, plan: WorkerPlan, stdin: int, stdout: int) -> None:
        self.plan = plan
        self.number = plan.number
        self.all_ready = plan.all_ready
        self.folder = Path(plan.folder)
        self._stdin = stdin
        self._stdout = stdout
        self._is_orphan = False

    def listener(self) -> TcpListener:
        """Return the port, which the supervisor has opened."""
        return TcpListener.made_of(socket.socket(fileno=self.plan.descriptor))

    def follow(self) -> None:
        """Listen to the supervisor from now on."""
        threading.Thread(target=self._follow, name="supervisor", daemon=True).start()

    async def report(self, is_ready: Callable[[], bool]) -> None:
        """Tell the supervisor that the port answers, and then when `is_ready` first says so."""
        self._say("serving")
        while not is_ready():  # noqa: ASYNC110 - several things decide on it, and it is looked at for seconds only
            await anyio.sleep(_LOOK_SECONDS)
        self._say("ready")

    def report_login(self, upstream: str, principal: str) -> None:
        """Tell the supervisor of a login that a browser has completed here, for the others."""
        self._say("login", {"upstream": upstream, "principal": principal})

    def _say(self, what: str, more: Any = True) -> None:
        try:
            os.write(self._stdout, json.dumps({what: more}).encode() + b"\n")
        except OSError:  # it is gone, which `_follow` notices
            return

    def _follow(self) -> None:
        with os.fdopen(self._stdin, "rb") as said:
            for line in said:
                self.all_ready = self.all_ready or b"all_ready" in line
        self._is_orphan = True
        os.kill(os.getpid(), signal.SIGTERM)

    def tidy(self) -> None:
        """Remove what the workers have shared, as the last of those whose supervisor is gone."""
        if self._is_orphan and not any(self.folder.glob("*.sock")):
            shutil.rmtree(self.folder, ignore_errors=True)


def become_worker() -> Worker:
    """Take the plan from stdin. Neither `print` nor a child process can interfere with the supervisor afterwards.

    Raises:
        ValueError: whoever has started the process is not a supervisor.
    """
    stdin, stdout = claim(0, nothing), claim(1, stderr)
    line = bytearray()
    while not line.endswith(b"\n"):
        if not (piece := os.read(stdin, 1)) or len(line) > _LONGEST:
            raise ValueError("--worker is for the processes that `mcp-gateway serve --workers` starts")
        line += piece
    try:
        plan = WorkerPlan(**json.loads(line))
        os.set_inheritable(plan.descriptor, False)
        return Worker(plan, stdin, stdout)
    except (ValueError, TypeError, OSError):
        raise ValueError("the supervisor is of another version: start the gateway again") from None
