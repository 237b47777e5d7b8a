"""The key that handles are made with: configured, or created once and kept in the store itself."""

import hashlib
import secrets
from pathlib import Path

import anyio.to_thread

from gateway.content.store.backend import Backend
from gateway.content.store.handles import KEY_BYTES
from gateway.content.store.obstore_errors import failing
from gateway.content.store.records import KEY
from gateway.errors import StoreUnavailable
from gateway.system.files import write_new_file


async def key_of(backend: Backend, configured: str | None) -> bytes:
    """Return the key of a store. Two gateways that ask for the first time at once get the same key.

    Raises:
        StoreUnavailable: the key cannot be read or created, or is malformed.
    """
    if configured is not None:
        return hashlib.blake2b(configured.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()
    if (folder := backend.folder) is not None:
        with failing(backend.where):
            kept = await anyio.to_thread.run_sync(_file_key, folder)
    else:
        kept = await backend.get(KEY)
        if kept is None:
            await backend.put_new(KEY, secrets.token_hex(KEY_BYTES).encode())
            kept = await backend.get(KEY) or b""
    try:
        key = bytes.fromhex(kept.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise StoreUnavailable(
            f"the object {KEY!r} in the store {backend.where} is not a key",
            remedy="remove it, which makes a new one and forgets all content; or set store.key",
        )
    return key


def _file_key(folder: Path) -> bytes:
    """Return the key from a file that only its owner can read."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / KEY
    if not path.exists():
        write_new_file(path, secrets.token_hex(KEY_BYTES).encode())  # unless another gateway is first
    return path.read_bytes()
