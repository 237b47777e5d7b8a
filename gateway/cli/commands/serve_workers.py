"""`mcp-gateway serve --http --workers N`: the process that starts the workers, and answers commands for them."""

import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio

from gateway.admission.capacity import capacity
from gateway.cli.command_context import run_until_signal
from gateway.cli.controlled_gateway import Start
from gateway.cli.exit_codes import DONE, TERMINATED
from gateway.cli.http_addresses import origin_of, owner_over_http, tell_where
from gateway.cli.stop_request import StopRequest, stop_or_end
from gateway.config.schema import Settings
from gateway.errors import ConfigError, GatewayError
from gateway.serving.control.status_report import Serving
from gateway.system.background_tasks import background_tasks
from gateway.telemetry import make_formatter
from gateway.telemetry.logs import log_plainly

if TYPE_CHECKING:
    from gateway.serving.http import TcpListener
    from gateway.serving.workers.one_control import OneControl
    from gateway.serving.workers.worker import Worker, WorkerPlan

logger = logging.getLogger(__name__)

_LINES = logging.getLogger("gateway.workers.lines")
"""For lines that workers have written, which are finished."""
_FOLDER = "workers-of-mcp-gateway-"
"""Not as `endpoint.OWN_FOLDER`, whose folders end with the socket of one gateway."""
_LONGEST_FOLDER = 80
"""Maximum length of the shared folder's path in bytes, so that the paths of sockets in it are not too long."""


class WorkerOptions(NamedTuple):
    """How many workers, and the options of `serve` that each of them gets."""

    number: int
    debug: bool
    words: Sequence[str]

    def command(self) -> Sequence[str]:
        """Return the command that starts a worker. -P: the folder in which it runs is not searched for modules."""
        debug = ("--debug",) if self.debug else ()
        return (sys.executable, "-P", "-m", "gateway", *debug, "serve", "--http", "--worker", *self.words)


def worker_words(options: Mapping[str, object], urls: Sequence[str], command: Sequence[str]) -> Sequence[str]:
    """Return the options of `serve` that a worker gets as well; those that are None are not given."""
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    words += [word for url in urls for word in ("--upstream", url)]
    return (*words, *(("--", *command) if command else ()))


def settings_of_worker(settings: Settings, worker: "Worker") -> Settings:
    """Return the settings of one worker: it has a part of what the machine has, and shares what is in memory alone."""
    of = worker.plan.of
    store = settings.store
    if store.url.startswith("memory:"):
        store = store.model_copy(update={"url": (worker.folder / "store").as_uri()})
    overload = settings.overload.model_copy(update=_shares(settings, of))
    media = settings.media.model_copy(update={"workers": max(1, settings.media.workers // of)})
    http = settings.http.model_copy(update={"port": worker.plan.port})
    return settings.model_copy(update={"http": http, "store": store, "overload": overload, "media": media})


def _shares(settings: Settings, of: int) -> dict[str, int]:
    """Return one worker's part of what the whole gateway may do at once."""
    overload = settings.overload
    whole = {"calls_at_once": capacity(overload, settings.media.workers).calls}
    whole |= {key: given for key in ("queue", "media_queue", "memory") if (given := getattr(overload, key)) is not None}
    return {key: max(1, number // of) if number else 0 for key, number in whole.items()}


def check_workers(settings: Settings) -> None:
    """Refuse settings that several workers cannot serve.

    Raises:
        ConfigError: there is one.
    """
    if sys.platform == "win32":
        raise ConfigError(
            "--workers is not supported on Windows, where processes cannot share a port like this",
            remedy="start it without, or several gateways with [cluster] behind a load balancer",
        )
    if settings.cluster.url is not None:
        raise ConfigError(
            "--workers is for one machine without [cluster]: each replica of a cluster is one process",
            where="cluster.url",
            remedy="start several gateways, each with a port of its own, or remove [cluster]",
        )
    if settings.console.enabled:
        raise ConfigError(
            "several workers have no console: each would show its own calls alone",
            where="console.enabled",
            remedy="start the gateway without --workers, or without the console",
        )
    if settings.experimental.files:
        raise ConfigError(
            "several workers take no files beside the protocol: only the one that was asked for a place knows of it",
            where="experimental.files",
            remedy="start the gateway without --workers, or remove the setting",
        )


def run_workers(start: Start, options: WorkerOptions, stop: StopRequest) -> int:
    """Serve with several workers until stopped, and return the exit code.

    Raises:
        ConfigError: the settings are not for several workers, or the port cannot be opened.
    """
    check_workers(start.settings)
    ended = run_until_signal(partial(_serve, start, options, stop), interrupt=stop.interrupt, terminate=stop.ask)
    return DONE if ended == TERMINATED else ended or DONE


async def _serve(start: Start, options: WorkerOptions, stop: StopRequest) -> int:
    from gateway.config.find_config import state_folder
    from gateway.content.links.links import link_key
    from gateway.serving.control.control_plane import answer_commands, control_folder, logged
    from gateway.serving.workers.answer_last import answer_last
    from gateway.serving.workers.one_control import OneControl
    from gateway.serving.workers.supervisor import Supervisor

    settings = start.settings
    link_key(settings.content.key, state_folder(os.environ))  # before several would each make one
    serving = Serving(start.path, time.time(), grace=settings.http.drain_grace)
    serving.principal = owner_over_http(settings)
    own = control_folder()
    with (
        contextlib.closing(_opened_port(settings)) as listener,
        _shared_folder() as folder,
        logged(own, serving, settings),
    ):
        for handler in logging.root.handlers:
            handler.setFormatter(_AsWritten(make_formatter(settings)))
        port = listener.getsockname()[1]

        def plan(number: int, all_ready: bool) -> "WorkerPlan":
            from gateway.serving.workers.worker import WorkerPlan

            return WorkerPlan(number, options.number, listener.fileno(), port, str(folder), all_ready)

        def on_serving() -> None:
            address = origin_of(settings, port)
            serving.transports[:0] = [f"{address}/mcp", f"{address}/sse"]
            tell_where(settings, address)

        supervisor = Supervisor(options.number, options.command(), plan, _pass_on, on_serving)
        stop.drain = supervisor.stop
        control = OneControl(supervisor, folder, serving, settings.gateway.name)
        async with background_tasks() as tasks:
            if own is not None:
                commands = control.commands(partial(stop_or_end, stop, tasks.cancel_scope))
                tasks.start_soon(answer_commands, own, serving, settings.gateway.name, commands)
            tasks.start_soon(_reload_on_signal, control)
            if code := await supervisor.run():
                return code
            await answer_last(settings.http, listener)
            return stop.code
    return stop.code


def _opened_port(settings: Settings) -> "TcpListener":
    """Open the port that the workers share. Raises ConfigError."""
    from gateway.serving.access import Access
    from gateway.serving.http.http_server import Listening, listen
    from gateway.serving.mcp.security import check_bind

    access = Access(settings.http, settings.access, public_url=settings.gateway.public_url)
    needs_token = access.needs_token or settings.access.authorization_server is not None
    check_bind(settings.http, needs_token=needs_token, public_url=settings.gateway.public_url)
    return listen(Listening(settings.http.bind, settings.http.port, "http.port"))


@contextlib.contextmanager
def _shared_folder() -> Generator[Path]:
    """Provide the folder for what the workers share, closed to other users, which ends with them."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    except OSError as error:
        words = f"the workers have no folder for temporary files: {error.strerror or error}"
        raise ConfigError(words, remedy="set TMPDIR to a folder that can be written") from error
    try:
        if len(os.fsencode(folder)) > _LONGEST_FOLDER:
            raise ConfigError(f"the path {folder} is too long for sockets", remedy="set TMPDIR to a shorter one")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _reload_on_signal(control: "OneControl") -> None:
    """Have the workers read the configuration again on SIGHUP."""
    with anyio.open_signal_receiver(signal.SIGHUP) as signals:
        async for _ in signals:
            try:
                await control.reload()
            except GatewayError as error:
                logger.error("the configuration was not read again by all workers: %s", error)


def _pass_on(line: str) -> None:
    """Write a line of a worker to the log, as it is."""
    log_plainly(_LINES, line)


class _AsWritten(logging.Formatter):
    """Formats records like `inner`, except lines of workers, which are formatted already."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage() if record.name == _LINES.name else self._inner.format(record)
