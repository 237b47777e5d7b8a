"""What keeps a gateway from starting although its configuration is valid: what these settings need is not there."""

import os
from collections.abc import Callable, Iterator

from gateway.config.audit_settings import AuditSettings
from gateway.config.schema import Settings
from gateway.errors import ConfigError


def check_start(settings: Settings, *, over_http: bool) -> None:
    """Raise ConfigError with all that keeps a gateway from starting."""
    found = [*start_faults(settings), *(_database_faults(settings) if over_http else ())]
    if found:
        raise ConfigError("\n".join(map(str, found)), problems=found)


def start_faults(settings: Settings) -> Iterator[ConfigError]:
    """Yield why any gateway with these settings would not start. Nothing is started, opened or written."""
    yield from _raised(lambda: _code_mode(settings))
    yield from _raised(lambda: _audit(settings.audit))


def _database_faults(settings: Settings) -> Iterator[ConfigError]:
    """Yield why one over HTTP would not start besides. No database is asked."""
    yield from _raised(lambda: _cluster(settings.cluster.url))
    server = settings.access.authorization_server
    yield from _raised(lambda: _state(None if server is None else server.state))


def _raised(check: Callable[[], object]) -> Iterator[ConfigError]:
    try:
        check()
    except ConfigError as error:
        yield error


def _code_mode(settings: Settings) -> None:
    if settings.code_mode.enabled:
        from gateway.sandbox.sandbox import check_installed

        check_installed()


def _audit(settings: AuditSettings) -> None:
    if settings.path is None:
        return
    if settings.otlp:
        from gateway.telemetry.audit.send_lines import exporter_class

        exporter_class()
    there = next(each for each in (settings.path, *settings.path.parents) if each.exists())
    if there == settings.path and there.is_dir():
        raise ConfigError("is a folder", where="audit.path", remedy="name a file in it")
    if not os.access(there, os.W_OK) or (there != settings.path and not there.is_dir()):
        raise ConfigError("cannot be written", where="audit.path", remedy="name a file in a folder of this user")


def _cluster(url: str | None) -> None:
    if url is not None:
        from gateway.serving.cluster.keys import TAG
        from gateway.serving.databases.redis_connection import RedisConnection

        RedisConnection(url, TAG, "cluster.url")


def _state(url: str | None) -> None:
    if url is not None:
        from gateway.serving.authorization.state import shared_state

        shared_state(url, "access.authorization_server.state")
