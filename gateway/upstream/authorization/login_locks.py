"""Locks between the gateways of a user: only one of them at a time changes the tokens of a login.

Without them, two gateways would refresh with the same refresh token. Servers that notice its reuse end the login.
"""

import hashlib
import os
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import anyio

from gateway.errors import VaultLocked
from gateway.system.file_lock import try_lock

_LOOKS = 0.02
_SECONDS = 30.0
"""Longer than a refresh takes, with the time limit of its request."""


@asynccontextmanager
async def login_lock(folder: Path, principal: str, upstream: str) -> AsyncGenerator[None]:
    """Hold the lock of a login inside the context; other tasks go on while it waits.

    Where no file can be created, no other gateway keeps tokens either, and there is no lock.

    Raises VaultLocked if another gateway does not release it.
    """
    with ExitStack() as stack:
        descriptor = _opened(folder, principal, upstream)
        if descriptor is not None:
            stack.callback(os.close, descriptor)
            await _locked(descriptor, upstream)
        yield


def _opened(folder: Path, principal: str, upstream: str) -> int | None:
    name = hashlib.sha256(f"{principal}\0{upstream}".encode()).hexdigest()[:32]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None


async def _locked(descriptor: int, upstream: str) -> None:
    with anyio.move_on_after(_SECONDS):
        while not try_lock(descriptor):  # noqa: ASYNC110 - no event tells that another process has released it
            await anyio.sleep(_LOOKS)
        return
    raise VaultLocked(
        f"another gateway has been changing the login to {upstream} for {_SECONDS:g} s", remedy="try again later"
    )
