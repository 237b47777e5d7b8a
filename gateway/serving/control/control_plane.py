"""The control plane of a running gateway: its log file, its control socket and the watch on its configuration.

None of these is needed to serve: if one is not available, a warning is logged.
"""

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from gateway._version import __version__
from gateway.config.schema import Settings
from gateway.config.settings_diff import Difference
from gateway.serving.console.on_request import ConsoleOnRequest
from gateway.serving.control import logins
from gateway.serving.control.approve_calls import answer_approvals
from gateway.serving.control.content_owners import ContentOwners
from gateway.serving.control.contents import Contents
from gateway.serving.control.endpoint import Endpoint
from gateway.serving.control.listeners import listen
from gateway.serving.control.log_file import LogFile, beginning, last_lines, log_path, prune
from gateway.serving.control.pending_calibration import answer, apply_pending_calibration
from gateway.serving.control.read_pins import read_pins_again
from gateway.serving.control.records import GatewayRecord, running, stem, write_record
from gateway.serving.control.reload_config import Load, Reloader
from gateway.serving.control.server import Commands, answer_callers
from gateway.serving.control.status_report import Running, Serving, report
from gateway.serving.control.watch_config import watch
from gateway.system.background_tasks import background_tasks
from gateway.system.runtime_dir import own_folder, passed_over
from gateway.telemetry import make_formatter

if TYPE_CHECKING:
    from gateway.serving.console.ports import Operation

logger = logging.getLogger(__name__)


@asynccontextmanager
async def under_control(
    gateway: Running,
    serving: Serving,
    *,
    stop: Callable[[], None],
    load: Load | None = None,
    seen: bytes | None = None,
    on_applied: Callable[[Settings], None] | None = None,
    on_refused: Callable[[], Awaitable[None]] | None = None,
) -> AsyncGenerator[None]:
    """Context manager in which `status`, `reload` and the like reach the gateway, and it follows its configuration.

    `stop` is called on the command to stop. `load` reads the configuration again, and `seen` is its last fingerprint
    (`gateway.config.fingerprint`); without `load` nothing is watched. `on_applied` is called with the settings in force
    after each change, `on_refused` after each that cannot be applied.
    """

    def apply(settings: Settings) -> Difference:
        difference = gateway.apply(settings)
        for handler in logging.root.handlers:  # they redact the secrets in the settings, which may have changed
            handler.setFormatter(make_formatter(gateway.settings))
        if on_applied is not None:
            on_applied(gateway.settings)
        return difference

    on_reloaded = gateway.audit.reloaded if gateway.audit is not None else None
    reloader = Reloader(load, apply, on_refused, on_reloaded)
    own = control_folder()
    folder = serving.worker_folder or own
    with logged(own if serving.worker_folder is None else None, serving, gateway.settings):
        async with background_tasks() as tasks:
            operation = partial(_operation, serving, reloader)
            serving.console = ConsoleOnRequest(gateway, partial(report, gateway, serving, reloader), tasks, operation)
            if folder is not None:
                apply_pending_calibration(own or folder, gateway.calibration)
                calibrate = partial(answer, gateway.calibration)
                most = gateway.settings.content.max_upload_bytes
                contents = Contents(gateway.store, gateway.links, most, _owners(gateway, serving), serving.running)
                answers = (partial(report, gateway, serving, reloader), reloader.reload, stop)
                commands = Commands(
                    *answers,
                    calibrate=calibrate,
                    content=contents.answer,
                    approvals=partial(answer_approvals, gateway.router.approvals),
                    pins=partial(read_pins_again, gateway.router),
                    logins=partial(logins.answer, gateway),
                    console=serving.console.address,
                    attach=None if serving.shared is None else serving.shared.serve,
                    grace=serving.grace,
                )
                tasks.start_soon(answer_commands, folder, serving, gateway.settings.gateway.name, commands)
            if load is not None and serving.config is not None:
                tasks.start_soon(watch, serving.config, seen, reloader.reload_quietly)
            yield


def _owners(gateway: Running, serving: Serving) -> ContentOwners:
    def seen() -> list[str]:
        return [host.caller.principal for host in serving.connected_hosts()]

    def only_http() -> bool:
        return bool(serving.transports) and not any(one.startswith("stdio") for one in serving.transports)

    return ContentOwners(serving.principal, lambda: gateway.settings, seen, only_http)


def _operation(serving: Serving, reloader: Reloader) -> "Operation":
    from gateway.serving.console.ports import Operation

    def log_lines(count: int) -> list[str]:
        return [] if serving.log is None else last_lines(serving.log, count)

    return Operation(serving.config, serving.principal, reloader.reload, log_lines)


def control_folder() -> Path | None:
    """Return the folder in which commands find the gateway; None if there is none, which the log says."""
    if (unused := passed_over()) is not None:
        logger.warning("%s", unused)
    try:
        return own_folder()
    except OSError as error:
        logger.warning("no control endpoint and no log file: %s; `status` and `stop` cannot reach this gateway", error)
        return None


@contextmanager
def logged(folder: Path | None, serving: Serving, settings: Settings) -> Generator[None]:
    """Context manager: log records also go to a file, if there is a folder for it."""
    if folder is None:
        yield
        return
    path = log_path(folder, os.getpid(), serving.started)
    try:
        handler = LogFile(path, make_formatter(settings))
    except OSError as error:
        logger.warning("no log file: %s", error)
        yield
        return
    serving.log = path
    logging.root.addHandler(handler)
    logger.info("%s", beginning(__version__, serving.config))
    try:
        yield
    finally:
        logging.root.removeHandler(handler)
        handler.close()


async def answer_commands(folder: Path, serving: Serving, name: str, commands: Commands) -> None:
    """Answer commands until cancelled. A gateway that cannot be reached by them serves without them."""
    try:
        await anyio.to_thread.run_sync(_tidy, folder, serving.log)
        listener, endpoint = await listen(folder, stem(os.getpid(), serving.started))
    except Exception as error:  # whatever the cause, the gateway serves without it
        logger.warning("no control endpoint: %s; `status`, `reload` and `stop` cannot reach this gateway", error)
        serving.on_reachable(str(error))
        return
    record: Path | None = None
    try:
        record = write_record(folder, _record(serving, name, endpoint))
        serving.on_reachable(None)
        await answer_callers(listener, endpoint, commands)
    except Exception as error:  # as above
        logger.warning("the control endpoint is closed: %s", error)
        serving.on_reachable(str(error))
    finally:
        with suppress(OSError):  # the next command that looks removes what remains
            if record is not None:
                record.unlink(missing_ok=True)
            endpoint.remove()
        with anyio.CancelScope(shield=True):
            await listener.aclose()


def _record(serving: Serving, name: str, endpoint: Endpoint) -> GatewayRecord:
    config, log = (str(path) if path is not None else None for path in (serving.config, serving.log))
    shared = None if serving.shared is None else serving.shared.key
    return GatewayRecord(os.getpid(), serving.started, name, __version__, config, log, endpoint, shared)


def _tidy(folder: Path, log: Path | None) -> None:
    """Remove old logs, and files of gateways that ended without cleaning up (`running` does the latter)."""
    logs = {Path(record.log) for record in running() if record.log is not None}
    prune(folder, frozenset({*logs, log} if log is not None else logs))
