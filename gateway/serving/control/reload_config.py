"""Reload a changed configuration while the gateway runs: it is applied as a whole, or refused as a whole."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any

import anyio
import anyio.to_thread

from gateway.config.schema import Settings
from gateway.config.settings_diff import OF_UPSTREAMS, Difference
from gateway.errors import ConfigError, GatewayError

logger = logging.getLogger(__name__)

Load = Callable[[], Settings]
"""Reads the settings again. Raises ConfigError. May block."""

Apply = Callable[[Settings], Difference]
"""Applies the settings, or raises ConfigError or ProfileError and changes nothing."""


Told = Callable[[Sequence[str], str | None], None]
"""Called with the changes, as lines, and with the reason if they are refused."""


class Reloader:
    """Reloads, one at a time. `problem`: why the newest file is refused; `restart_needed`: keys not in force yet.

    `on_refused` is awaited if it is, whatever the reason; `on_reloaded` is called in either case.
    """

    def __init__(
        self,
        load: Load | None,
        apply: Apply,
        on_refused: Callable[[], Awaitable[None]] | None = None,
        on_reloaded: Told | None = None,
    ) -> None:
        self._load = load
        self._apply = apply
        self._on_refused = on_refused
        self._on_reloaded = on_reloaded
        self._one_at_a_time = anyio.Lock()
        self.applied_at = time.time()
        """When the settings in force were read, in seconds since 1970."""
        self.problem: str | None = None
        self.restart_needed: tuple[str, ...] = ()

    async def reload(self) -> dict[str, Any]:
        """Read and apply the configuration, and return the changes (`Difference`, as JSON).

        Raises:
            ConfigError: there is no file, or it is invalid.
            ProfileError: a profile in it is inconsistent.
        """
        if self._load is None:
            raise ConfigError(
                "this gateway was started without a configuration file", remedy="start it again with other arguments"
            )
        async with self._one_at_a_time:
            try:
                settings = await anyio.to_thread.run_sync(self._load)
                difference = self._apply(settings)
            except Exception as error:
                # Of an unexpected error only the type: its text may hold anything.
                known = isinstance(error, GatewayError)
                self.problem = str(error) if known else f"an internal error of the gateway: {type(error).__name__}"
                logger.error(
                    "the changed configuration is refused, and the previous one stays in force: %s", self.problem
                )
                self._tell((), self.problem)
                if self._on_refused is not None:
                    await self._on_refused()
                raise
            was_refused, self.problem = self.problem is not None, None
            self.applied_at = time.time()
            self.restart_needed = difference.restart_needed
            if difference:
                lines = lines_of(asdict(difference))
                logger.info("the configuration was read again: %s", "; ".join(lines))
                self._tell(lines)
            elif was_refused:
                logger.info("the configuration is corrected; nothing in it differs from the one in force")
            return asdict(difference)

    def _tell(self, changes: Sequence[str], problem: str | None = None) -> None:
        if self._on_reloaded is not None:
            self._on_reloaded(changes, problem)

    async def reload_quietly(self) -> None:
        """Reload after a change of the file was noticed: errors are only logged, because no caller waits for them."""
        try:
            await self.reload()
        except GatewayError:
            pass  # logged above, and shown by `status`
        except Exception:  # an error in here must not end the gateway
            logger.exception("reading the configuration again failed")


def lines_of(difference: dict[str, Any]) -> list[str]:
    """Describe the changes, with a line for each upstream and key."""
    words = {kind: f"upstream {{}} {kind}" for kind in OF_UPSTREAMS}
    words |= {"applied": "{} applied", "restart_needed": "{} needs a restart of the gateway"}
    return [said.format(name) for kind, said in words.items() for name in difference.get(kind) or ()]
