"""Where tokens of logins are kept: a file in which each is sealed, or only the memory.

The file is shared by all gateways of a user. It names whose each login is, for which upstream and from which
authorization server, since that is not a secret and has to be listed without the key. The tokens are sealed (AES-GCM),
together with these names: an entry that was moved to another name does not open.
"""

import base64
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import anyio.to_thread
from pydantic import ValidationError

from gateway.config.expansion import NoValue
from gateway.config.login_settings import LoginSettings
from gateway.config.secret_sources import find_in_keyring, keep_in_keyring
from gateway.core.model.format_versions import UPDATE_GATEWAY, newer_than
from gateway.core.model.json_values import is_list, is_object
from gateway.errors import LoginUnreadable, VaultLocked
from gateway.system.file_lock import locked
from gateway.system.files import write_file
from gateway.upstream.authorization.login_locks import login_lock
from gateway.upstream.authorization.ports import LoginKey, Tokens, TokenVault

KEYRING_ENTRY = "logins key"
"""The name of the key's entry in the keyring."""

FILE_NAME = "logins.json"

LOGINS_VERSION = 1
_KEY_BYTES = 32
_NONCE_BYTES = 12
_LARGEST = 64 * 1024 * 1024
"""Bytes of a file that is read: more than is written, which had no bound once."""
MOST_KEPT = 32 * 1024 * 1024
"""Characters of sealed logins that are kept: a file beyond `_LARGEST` would lose the logins to all upstreams."""
_LOCK_SECONDS = 10.0
_FAILED_SECONDS = 5.0
"""Seconds in which a keyring that could not be read is not asked again: it may ask its user each time."""

_Kept = Mapping[LoginKey, str]
"""The sealed tokens, as base64."""


def open_vault(settings: LoginSettings, folder: Path | None) -> TokenVault:
    """Return the vault in the state folder; without a folder, tokens last as long as the process."""
    return SealedVault(folder / FILE_NAME, SealingKey(settings.key)) if folder is not None else MemoryVault()


class SealingKey:
    """The key that seals tokens: derived from the configured one, or random and kept in the keyring. Blocks."""

    def __init__(self, configured: str | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._configured = configured
        self._clock = clock
        self._failed: tuple[float, NoValue] | None = None
        self.known: bytes | None = None
        """The key, once it was read or created."""
        self._lock = threading.Lock()

    def read(self) -> bytes | None:
        """Return the key; None if none was created yet. Raises VaultLocked."""
        with self._lock:
            return self._read()

    def read_or_create(self) -> bytes:
        """Return the key, created if there is none. Raises VaultLocked."""
        with self._lock:
            if (known := self._read()) is not None:
                return known
            try:
                keep_in_keyring(KEYRING_ENTRY, secrets.token_urlsafe(_KEY_BYTES))
            except NoValue as problem:
                raise _no_keyring(problem) from problem
            if (known := self._read()) is None:
                raise _no_keyring(NoValue("the keyring did not keep an entry", ""))
            return known

    def _read(self) -> bytes | None:
        if self.known is None:
            if self._failed is not None and self._clock() - self._failed[0] < _FAILED_SECONDS:
                raise _no_keyring(self._failed[1])
            try:
                found = self._configured or find_in_keyring(KEYRING_ENTRY)
            except NoValue as problem:
                self._failed = self._clock(), problem
                raise _no_keyring(problem) from problem
            self.known = None if found is None else _derived(found)
        return self.known


class _NewerFile(Exception):
    """The file was written by a newer version of the gateway."""


@dataclass(frozen=True)
class _Read:
    """The file's content, and the file that it was read from."""

    file: tuple[int, int, int]
    kept: _Kept


class SealedVault:
    """Tokens in a file, readable by its user only, and replaced as a whole."""

    def __init__(self, path: Path, key: SealingKey) -> None:
        self._path = path
        self._key = key
        self._latest: _Read | None = None
        # One thread, and not those of everybody else: a locked keyring may let each caller wait.
        self._one_at_a_time = anyio.CapacityLimiter(1)

    async def get(self, key: LoginKey) -> Tokens | None:
        """Return the tokens of a login. Raises VaultLocked, and LoginUnreadable if these alone cannot be opened."""
        sealed = (await self._kept()).get(key)
        if sealed is None:
            return None
        secret = self._key.known or await anyio.to_thread.run_sync(self._key.read, limiter=self._one_at_a_time)
        return _opened(key, sealed, secret, self._path)

    async def put(self, key: LoginKey, tokens: Tokens) -> None:
        """Keep the tokens of a login in place of earlier ones. Raises VaultLocked."""

        def change(kept: _Kept) -> _Kept:
            sealed = _sealed(key, tokens, self._key.read_or_create())
            others = [each for each in kept if each != key]
            if len(sealed) > max(_room(kept, others, key.upstream), len(kept.get(key, ""))):
                raise VaultLocked(
                    f"the login to {key.upstream} cannot be kept in {self._path}: there are too many",
                    remedy="log out those who no longer need theirs (`mcp-gateway logout`)",
                )
            return {**kept, key: sealed}

        await self._in_thread(change)

    async def delete(self, key: LoginKey) -> None:
        """Forget the tokens of a login, if there are any. Raises VaultLocked."""

        def change(kept: _Kept) -> _Kept:
            return {each: sealed for each, sealed in kept.items() if each != key}

        if key in await self._kept():
            await self._in_thread(change)

    async def keys(self, principal: str | None = None) -> Sequence[LoginKey]:
        """Return the logins of a principal, or of all. Raises VaultLocked."""
        return tuple(key for key in await self._kept() if principal in (None, key.principal))

    def alone(self, principal: str, upstream: str) -> AbstractAsyncContextManager[None]:
        """Keep other processes from changing the tokens of a login inside the context (`login_lock`)."""
        return login_lock(self._path.with_suffix(".locks"), principal, upstream)

    async def _kept(self) -> _Kept:
        """Return the file's content, read again only if the file has changed: every request may need a token."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            self._unreadable(error)
        file = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._latest is None or self._latest.file != file:
            self._latest = _Read(file, await anyio.to_thread.run_sync(self._read, limiter=self._one_at_a_time))
        return self._latest.kept

    def _read(self) -> _Kept:
        try:
            with self._path.open("rb") as file:
                content = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            self._unreadable(error)
        try:
            return _parsed(content)
        except _NewerFile as newer:
            raise VaultLocked(f"the logins in {self._path} cannot be read: {newer}", remedy=UPDATE_GATEWAY) from None
        except (ValueError, RecursionError, KeyError, TypeError):
            raise VaultLocked(
                f"the logins in {self._path} cannot be read: the file is damaged",
                remedy="restore it, or move it away and log in again",
            ) from None

    async def _in_thread(self, change: Callable[[_Kept], _Kept]) -> None:
        # Shielded: a token that was just received may be the only one that is still valid.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._change, change, limiter=self._one_at_a_time)

    def _change(self, change: Callable[[_Kept], _Kept]) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self._path.with_suffix(".lock"), _LOCK_SECONDS):
                write_file(self._path, _written(change(self._read())))
        except OSError as error:
            raise VaultLocked(
                f"the logins in {self._path} cannot be kept: {error.strerror or error}",
                remedy="see to the file, or set $MCP_GATEWAY_STATE to another folder",
            ) from error

    def _unreadable(self, error: OSError) -> NoReturn:
        raise VaultLocked(
            f"the logins in {self._path} cannot be read: {error.strerror or error}",
            remedy="make it readable for this user",
        ) from error


class MemoryVault:
    """Tokens that last as long as the process."""

    def __init__(self) -> None:
        self._kept: dict[LoginKey, Tokens] = {}

    async def get(self, key: LoginKey) -> Tokens | None:
        """Return the tokens of a login."""
        return self._kept.get(key)

    async def put(self, key: LoginKey, tokens: Tokens) -> None:
        """Keep the tokens of a login in place of earlier ones."""
        self._kept[key] = tokens

    async def delete(self, key: LoginKey) -> None:
        """Forget the tokens of a login, if there are any."""
        self._kept.pop(key, None)

    async def keys(self, principal: str | None = None) -> Sequence[LoginKey]:
        """Return the logins of a principal, or of all."""
        return tuple(key for key in self._kept if principal in (None, key.principal))

    def alone(self, principal: str, upstream: str) -> AbstractAsyncContextManager[None]:
        """Return an empty context: no other process has these tokens."""
        return nullcontext()


def _room(kept: _Kept, others: Sequence[LoginKey], upstream: str) -> int:
    """Return how many characters another login to an upstream may have. None may use more than half of what there is.

    The servers decide how large their logins are, and those of one must not leave none for the others.
    """
    used = sum(_size(each, kept) for each in others)
    of_it = sum(_size(each, kept) for each in others if each.upstream == upstream)
    return min(MOST_KEPT - used, MOST_KEPT // 2 - of_it)


def _size(key: LoginKey, kept: _Kept) -> int:
    return len(json.dumps(key)) + len(kept[key])


def _no_keyring(problem: NoValue) -> VaultLocked:
    remedy = "unlock it, or set logins.key, such as ${file:...} or a variable, and log in again"
    return VaultLocked(f"the key of the logins is in the keyring: {problem}", remedy=remedy)


def _derived(secret: str) -> bytes:
    # Imported where it is needed, because few starts need it: not before somebody has logged in.
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), length=_KEY_BYTES, salt=None, info=b"mcp-gateway logins").derive(secret.encode())


def _bound(key: LoginKey) -> bytes:
    return json.dumps([LOGINS_VERSION, *key]).encode()


def _sealed(key: LoginKey, tokens: Tokens, secret: bytes) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_BYTES)
    content = AESGCM(secret).encrypt(nonce, tokens.model_dump_json().encode(), _bound(key))
    return base64.b64encode(nonce + content).decode()


def _opened(key: LoginKey, sealed: str, secret: bytes | None, path: Path) -> Tokens:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        raw = base64.b64decode(sealed, validate=True)
        if secret is None:
            raise ValueError
        return Tokens.model_validate_json(AESGCM(secret).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _bound(key)))
    except (InvalidTag, ValidationError, ValueError):
        raise LoginUnreadable(
            f"the login to {key.upstream} in {path} cannot be opened: it was sealed with another key, or is damaged",
            remedy=f"bring back its key (logins.key, or the keyring's entry), or `mcp-gateway login {key.upstream}`",
        ) from None


def _parsed(content: bytes) -> _Kept:
    document: Any = json.loads(content)
    if is_object(document) and (words := newer_than(LOGINS_VERSION, document.get("version"))) is not None:
        raise _NewerFile(words)
    if len(content) > _LARGEST or not is_object(document) or document.get("version") != LOGINS_VERSION:
        raise ValueError
    entries = document["logins"]
    if not is_list(entries):
        raise ValueError
    kept: dict[LoginKey, str] = {}
    for entry in entries:
        *names, sealed = (entry[name] for name in ("principal", "upstream", "issuer", "sealed"))
        if not all(isinstance(each, str) for each in (*names, sealed)):
            raise ValueError
        kept[LoginKey(*names)] = sealed
    return kept


def _written(kept: _Kept) -> bytes:
    entries = [{**key._asdict(), "sealed": sealed} for key, sealed in kept.items()]
    return json.dumps({"version": LOGINS_VERSION, "logins": entries}, indent=1).encode() + b"\n"
