"""Taking over a changed configuration while the gateway runs: applied as a whole, or refused as a whole."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import anyio
import anyio.to_thread

from gateway.config.schema import Settings
from gateway.config.settings_diff import Difference
from gateway.errors import ConfigError, GatewayError

logger = logging.getLogger(__name__)

Load = Callable[[], Settings]
"""Reads the settings again; raises ConfigError. May block."""

Apply = Callable[[Settings], Difference]
"""Takes them over; raises ConfigError or ProfileError with everything as it was."""


class Reloader:
    """One at a time. `problem` says why the newest version of the file is not in force, `restart_needed` what of it."""

    def __init__(self, load: Load | None, apply: Apply) -> None:
        self._load = load
        self._apply = apply
        self._one_at_a_time = anyio.Lock()
        self.applied_at = time.time()
        """When the settings in force were read, in seconds since 1970."""
        self.problem: str | None = None
        self.restart_needed: tuple[str, ...] = ()

    async def reload(self) -> dict[str, Any]:
        """Read and apply the configuration; what has changed (`Difference`, as JSON).

        Raises:
            ConfigError: there is no file, or it cannot be used.
            ProfileError: a profile in it does not hold together.
        """
        if self._load is None:
            raise ConfigError(
                "this gateway was started without a configuration file", remedy="start it again with other arguments"
            )
        async with self._one_at_a_time:
            try:
                settings = await anyio.to_thread.run_sync(self._load)
                difference = self._apply(settings)
            except GatewayError as error:
                self.problem = str(error)
                logger.error("the changed configuration is refused, and the one before stays in force: %s", error)
                raise
            self.problem = None
            self.applied_at = time.time()
            self.restart_needed = difference.restart_needed
            if difference:
                logger.info("the configuration was read again: %s", "; ".join(lines_of(asdict(difference))))
            return asdict(difference)

    async def reload_quietly(self) -> None:
        """The same for whoever noticed a change of the file: nobody waits for an answer, and the log has it all."""
        try:
            await self.reload()
        except GatewayError:
            pass  # logged above, and told by `status`
        except Exception:  # one mistake in here must not end the gateway
            logger.exception("reading the configuration again failed")


def lines_of(difference: dict[str, Any]) -> list[str]:
    """What has changed, in words: a line for each upstream and key."""
    words = {
        "added": "upstream {} added",
        "removed": "upstream {} removed",
        "restarted": "upstream {} started anew",
        "adjusted": "upstream {} adjusted",
        "applied": "{} applied",
        "restart_needed": "{} needs a restart of the gateway",
    }
    return [said.format(name) for kind, said in words.items() for name in difference.get(kind) or ()]
