"""The commands of a gateway with several workers: its supervisor passes them on, and answers as one gateway."""

import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from gateway.core.model.json_values import as_list
from gateway.errors import ConfigError, GatewayError
from gateway.serving.control import protocol
from gateway.serving.control.client import RELOAD_SECONDS, STATUS_SECONDS, ask
from gateway.serving.control.records import GatewayRecord, running_in
from gateway.serving.control.server import Commands
from gateway.serving.control.status_report import Serving
from gateway.serving.workers.merged_status import merged_status
from gateway.serving.workers.supervisor import Supervisor, WorkerProcess

logger = logging.getLogger(__name__)

_PIECE = 256 * 1024

NO_CONSOLE = "several workers have no console: each would show its own calls alone"
WITHOUT_WORKERS = "start the gateway without --workers for it"

Asked = tuple[WorkerProcess, dict[str, Any] | None, str | None]
"""A worker with its answer, or with the reason why there is none."""


class OneControl:
    """Passes commands on to the workers of `supervisor`, whose control sockets are in `folder`."""

    def __init__(self, supervisor: Supervisor, folder: Path, serving: Serving, name: str) -> None:
        self._supervisor = supervisor
        self._folder = folder
        self._serving = serving
        self._name = name
        supervisor.on_login = self._tell_others

    def commands(self, stop: Callable[[], None]) -> Commands:
        """Return the commands. `stop` is called on the command to stop."""
        return Commands(
            self._status,
            self.reload,
            stop,
            content=self._content,
            logins=self._logins,
            console=self._console,
            approvals=self._approvals,
            pins=self._pins,
            calibrate=self._calibrate,
            grace=self._serving.grace,
        )

    async def reload(self) -> dict[str, Any]:
        """Have all workers read the configuration again, and return the changes.

        Raises:
            GatewayError: one of them refuses it, or does not answer.
        """
        return (await self._all("reload", RELOAD_SECONDS))[0]

    async def _status(self) -> dict[str, Any]:
        return merged_status(os.getpid(), self._name, self._serving, await self._ask_all("status", STATUS_SECONDS / 2))

    async def _approvals(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """List the calls that wait at any worker, or approve or deny one of them where it waits."""
        details = _details(request)
        if details.get("action") == "ls":
            answers = await self._all("approvals", STATUS_SECONDS, **details)
            return {"waiting": [one for answer in answers for one in as_list(answer.get("waiting"))]}
        asked = await self._ask_all("approvals", STATUS_SECONDS, **details)
        for _, answer, _ in asked:
            if answer is not None:
                return answer
        raise next((GatewayError(why) for _, _, why in asked if why is not None), _none_runs())

    async def _pins(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return (await self._all("pins", STATUS_SECONDS, **_details(request)))[0]

    async def _calibrate(self, request: Mapping[str, Any]) -> dict[str, Any]:
        raise ConfigError(
            "several workers cannot be calibrated: a host is measured by one process", remedy=WITHOUT_WORKERS
        )

    async def _logins(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Tell all workers of a login, or that one has ended: they have the logins in one folder."""
        return (await self._all(request["command"], STATUS_SECONDS, **_details(request)))[0]

    async def _tell_others(self, number: int, login: Mapping[str, Any]) -> None:
        """Have the other workers use a login that a browser has completed at one of them."""
        details = {key: login.get(key) for key in ("upstream", "principal")}
        asked = await self._ask_all("login", STATUS_SECONDS, without=number, **details)
        for worker, _, why in asked:
            if why is not None and worker.number != number:
                logger.warning("worker %d does not know of a login yet: %s", worker.number, why)

    async def _console(self) -> str:
        raise ConfigError(NO_CONSOLE, remedy=WITHOUT_WORKERS)

    async def _content(self, request: dict[str, Any], incoming: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """Pass content on to any worker and back: they have one store."""
        record = next((record for _, record in self._records()), None)
        if record is None:
            raise _none_runs()
        said = {**request, **({} if record.endpoint.token is None else {"token": record.endpoint.token})}
        try:
            stream = await anyio.connect_unix(record.endpoint.address)
        except OSError:
            raise _none_runs() from None
        async with stream, anyio.create_task_group() as tasks:

            async def send() -> None:
                try:
                    await stream.send(protocol.format_line(said))
                    async for piece in incoming:
                        await stream.send(piece)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return  # it has refused, and what it says is on its way

            tasks.start_soon(send)
            try:
                while True:
                    yield await stream.receive(_PIECE)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                tasks.cancel_scope.cancel()

    def _records(self) -> list[tuple[WorkerProcess, GatewayRecord]]:
        known = {record.pid: record for record in running_in(self._folder)}
        workers = sorted(self._supervisor.running.values(), key=lambda one: one.number)
        return [(one, known[one.process.pid]) for one in workers if one.process.pid in known]

    async def _ask_all(self, command: Any, seconds: float, without: int = 0, **details: Any) -> list[Asked]:
        """Ask all workers at once, or all but one; one that does not accept commands yet has no answer."""
        answers: dict[int, Asked] = {
            one.number: (one, None, f"worker {one.number} is {one.state}") for one in self._supervisor.running.values()
        }

        async def one(worker: WorkerProcess, record: GatewayRecord) -> None:
            try:
                answer = await anyio.to_thread.run_sync(lambda: ask(record, command, seconds, **details))
                answers[worker.number] = worker, answer, None
            except GatewayError as error:
                answers[worker.number] = worker, None, str(error)

        records = await anyio.to_thread.run_sync(self._records)
        async with anyio.create_task_group() as tasks:
            for worker, record in records:
                if worker.number != without:
                    tasks.start_soon(one, worker, record)
        return [answers[number] for number in sorted(answers)]

    async def _all(self, command: Any, seconds: float, **details: Any) -> list[dict[str, Any]]:
        """Return the answers of all workers, at least one.

        Raises:
            GatewayError: one of them refuses, or does not answer.
        """
        asked = await self._ask_all(command, seconds, **details)
        if problems := [why for _, _, why in asked if why is not None]:
            raise GatewayError(problems[0])
        if not asked:
            raise _none_runs()
        return [answer for _, answer, _ in asked if answer is not None]


def _details(request: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key not in ("command", "token")}


def _none_runs() -> GatewayError:
    return GatewayError("no worker runs at present", remedy="try again in a moment")
