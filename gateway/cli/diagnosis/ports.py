"""Check the port of `serve --http`: whether it is free, and if not, which program has it."""

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from anyio import to_thread

from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.findings import CheckResult
from gateway.cli.running_gateways import is_same
from gateway.config.http_settings import HttpSettings
from gateway.config.schema import Settings
from gateway.core.fact_words import plain
from gateway.errors import ConfigError
from gateway.serving.access import Access
from gateway.serving.control.records import GatewayRecord, running
from gateway.serving.mcp.security import check_bind

ABOUT = "serve --http"
_OUR_WORDS = ("mcp-gateway", "gateway")


class Listener(NamedTuple):
    """The program that listens on a port: its process id, its name, and whether it is a gateway."""

    pid: int
    name: str
    is_gateway: bool


async def check_port(context: CheckContext) -> list[CheckResult]:
    """Check that the gateway could listen on its configured address."""
    http = context.settings.http
    findings = list(_reach(context.settings))
    failure = await to_thread.run_sync(_bind, http)
    taken_by = await to_thread.run_sync(listener, http.port) if failure == errno.EADDRINUSE else None
    record = None if taken_by is None else await to_thread.run_sync(record_of, taken_by)
    if record is not None and not _has(record, context.path):
        return [*findings, _of_another(http, record)]
    return [*findings, _verdict(http, failure, taken_by)]


def _reach(settings: Settings) -> Iterator[CheckResult]:
    asks = Access(settings.http, settings.access).needs_token or settings.access.authorization_server is not None
    try:
        check_bind(settings.http, needs_token=asks, public_url=settings.gateway.public_url)
    except ConfigError as error:
        yield CheckResult(ABOUT, "problem", error.message, error.remedy)


def _has(record: GatewayRecord, path: Path | None) -> bool:
    """Whether a running gateway has the configuration that is examined."""
    return record.config is None if path is None else is_same(path, record.config)


def _of_another(http: HttpSettings, record: GatewayRecord) -> CheckResult:
    whose = f"the gateway {plain(record.name)!r} (process {record.pid}), which runs with {_configuration(record)}"
    remedy = f"serve --http --port 0, or another http.port; `mcp-gateway stop --pid {record.pid}` ends the other"
    return CheckResult(ABOUT, "warning", f"port {http.port} of {http.bind} is taken by {whose}", remedy)


def _configuration(record: GatewayRecord) -> str:
    return "the defaults" if record.config is None else record.config


def _verdict(http: HttpSettings, failure: int | None, taken_by: Listener | None) -> CheckResult:
    place = f"port {http.port} of {http.bind}"
    if failure is None:
        return CheckResult(ABOUT, "ok", f"{place} is free" if http.port else f"any free port of {http.bind}")
    if failure == errno.EADDRINUSE:
        if taken_by is not None and taken_by.is_gateway:
            return CheckResult(ABOUT, "ok", f"{place} is taken by a gateway that is running (process {taken_by.pid})")
        by = f"by {taken_by.name} (process {taken_by.pid})" if taken_by else "by another program"
        ask = "" if taken_by or sys.platform == "win32" else f"; `lsof -nP -iTCP:{http.port}` shows which"
        return CheckResult(
            ABOUT, "warning", f"{place} is taken {by}", f"serve --http --port 0, or another http.port{ask}"
        )
    if failure == errno.EACCES:
        return CheckResult(
            ABOUT, "warning", f"listening on {place} is not permitted", "http.port = 8484: any above 1023"
        )
    why = os.strerror(failure).lower()
    remedy = 'http.bind = "127.0.0.1", or an address that this machine has'
    return CheckResult(ABOUT, "problem", f"cannot listen on {place}: {why}", remedy)


def _bind(http: HttpSettings) -> int | None:
    """Return the errno with which listening fails; None if it works. The socket is closed again."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            http.bind, http.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror:
        return errno.EADDRNOTAVAIL
    with socket.socket(family, kind, protocol) as one:
        if os.name == "posix":  # on other systems this option would let two programs share the port
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(address)
            one.listen(1)
        except OSError as error:
            return error.errno or errno.EADDRNOTAVAIL
    return None


def listener(port: int) -> Listener | None:
    """Return the program that listens on a TCP port; None if the system does not tell (another user's program)."""
    with suppress(psutil.Error):
        for one in psutil.net_connections("tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid is not None:
                return _described(psutil.Process(one.pid))
    return None


def record_of(found: Listener) -> GatewayRecord | None:
    """Return the record of the running gateway that a listening program is, or is a worker of."""
    records = {record.pid: record for record in running()}
    own = records.get(found.pid)
    if (
        own is not None or not found.is_gateway
    ):  # what else a gateway has started, such as an upstream, is not the gateway
        return own
    with suppress(psutil.Error):
        return records.get(psutil.Process(found.pid).ppid())
    return None


def _described(process: psutil.Process) -> Listener:
    # Arguments may contain secrets: they are examined, but never shown.
    words = process.cmdline()
    is_gateway = "serve" in words and any(Path(word).name in _OUR_WORDS for word in words)
    return Listener(process.pid, plain(process.name(), 40), is_gateway)
