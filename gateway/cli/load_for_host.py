"""Loading the configuration for a host on stdio, which is told if it cannot be used, and waits until it can."""

import logging
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from gateway._version import __version__
from gateway.cli.exit_codes import UNUSABLE
from gateway.config.early_config import read_greeting, toolsets_of_host
from gateway.config.find_config import find_file
from gateway.config.fingerprint import usability
from gateway.config.schema import Settings
from gateway.errors import ConfigError, ProfileError
from gateway.telemetry import configure_logging

if TYPE_CHECKING:
    from gateway.serving.mcp.early_stdio import EarlyStdio

logger = logging.getLogger(__name__)

LoadedT = TypeVar("LoadedT")


def load_for_host(
    load: Callable[[], LoadedT],
    opening: "EarlyStdio | None",
    config: Path | None,
    toolset: str | None,
    refused: ConfigError | ProfileError | None = None,
) -> LoadedT:
    """Return what `load` returns. If the configuration cannot be used, wait until it can, or end with the host.

    `config` and `toolset` are those that the command line names, if any. `refused`: the error of a start with what was
    loaded before.

    Raises:
        ConfigError, ProfileError: it cannot be used, and there is no host or no file that could be waited for.
    """
    file = find_file(config, environ=os.environ)
    seen = None if file is None else usability(file)
    try:
        if refused is not None:
            raise refused
        return load()
    except (ConfigError, ProfileError) as error:
        if opening is None or opening.is_by_hand or file is None:
            raise
        problem = str(error)
    from gateway.serving.mcp.await_configuration import await_configuration
    from gateway.serving.mcp.handshake import Identity

    def again() -> LoadedT | str:
        try:
            return load()
        except (ConfigError, ProfileError) as error:
            logger.error("the configuration still cannot be used: %s", error)
            return str(error)

    with refusal_logged(file, problem):
        found = await_configuration(opening, file, seen, problem, again)
        if found is None:
            raise typer.Exit(UNUSABLE)
        logger.info("the configuration is corrected: the host is served from now on")
    greeting = read_greeting(file, os.environ, toolsets_of_host(file, os.environ, toolset))
    opening.introduce(Identity(greeting.name, __version__, None, greeting.instructions, greeting.others))
    return found


@contextmanager
def refusal_logged(file: Path, problem: str, *, on_stderr: bool = True) -> Generator[None]:
    """Context manager: `mcp-gateway logs` shows why hosts are offered nothing, although no gateway has run."""
    from gateway.serving.control.control_plane import control_folder, logged
    from gateway.serving.control.status_report import Serving

    log = configure_logging(Settings())
    if not on_stderr:
        logging.root.removeHandler(log)
    with logged(control_folder(), Serving(file, time.time(), ["stdio"]), Settings()):
        logger.error("the configuration cannot be used, so hosts are offered nothing: %s", problem)
        yield
