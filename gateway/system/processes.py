"""Starting child processes, so that none is forgotten."""

from collections.abc import Sequence
from typing import Any

import anyio
from anyio.abc import Process


async def start_process(command: str | Sequence[str], **options: Any) -> Process:
    """`anyio.open_process`, not to be cancelled half-way: whoever is cancelled meanwhile is so at its next wait.

    Of a start that is cancelled asyncio kills the process, and waits for it; anyio cancels that wait too, and a zombie
    stays. `options` are those of `anyio.open_process`.

    Raises:
        OSError: the process cannot be started.
    """
    started: list[Process] = []
    with anyio.CancelScope(shield=True):
        started.append(await anyio.open_process(command, **options))
    return started[0]
