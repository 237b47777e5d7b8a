"""Starting child processes without ever leaving one behind."""

from collections.abc import Sequence
from typing import Any

import anyio
from anyio.abc import Process


async def start_process(command: str | Sequence[str], **options: Any) -> Process:
    """Call `anyio.open_process` in a way that cannot be cancelled halfway; the caller is cancelled at its next wait.

    If a start is cancelled, asyncio kills the process and waits for it; anyio cancels that wait too, which leaves a
    zombie. `options` are those of `anyio.open_process`.

    Raises:
        OSError: the process cannot be started.
    """
    started: list[Process] = []
    with anyio.CancelScope(shield=True):
        started.append(await anyio.open_process(command, **options))
    return started[0]
