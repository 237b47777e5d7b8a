"""How the process of a host attaches to a shared gateway: over its control socket. Standard library only.

    relay     {"command": "attach", "token": "...", "attach": 3, "pid": 4711, "profile": null, "model": null,
               "toolset": null, "toolsets": [], "first_id": 0, "salt": "...",
               "environment": {"GITHUB_TOKEN": "digest or null"}}
    gateway   {"ok": true, "result": {"pid": 4700}}, or {"ok": false, "error": "..."}; {"ok": true, "result":
              {"ending": true}} if it is about to end

After that, each line is one message of MCP, as on stdio. The relay answers what opens a connection, and repeats
`initialize` for the gateway. Lines with the member `relay` or `gateway` are between these two:

    relay     {"relay": {"waited": 1.5}}      the next message has waited for so many seconds already
    relay     {"relay": {"list": {"key": "...", "given": null}}}
                                              it asks for a list, which is kept by this key; `given` is the digest of
                                              the one that the host was given early (`early_lists`)
    gateway   {"gateway": "ends"}             it was stopped: nothing is lost, and it is started again when needed

Relay and gateway are of the same version of the program: that is part of the key by which they find each other.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gateway._version import __version__
from gateway.config.documents import read_document
from gateway.config.expansion import references
from gateway.config.find_config import CACHE_VARIABLE, PROFILES_VARIABLE, STATE_VARIABLE
from gateway.config.foreign import translate_document
from gateway.errors import ConfigError

ATTACH = 3
"""The version of the protocol above."""

GOODBYE = b'{"gateway":"ends"}\n'
"""The last line of a gateway that was stopped."""

FOLDERS = (CACHE_VARIABLE, PROFILES_VARIABLE, STATE_VARIABLE)
"""Variables that name folders: gateways with others are not the same gateway."""

_MOST_VARIABLES = 150
_LONGEST_VARIABLE = 60
"""So that the line stays within `protocol.MAX_REQUEST_BYTES`."""
_DIGEST = 16


def shared_key(config: Path, environ: Mapping[str, str]) -> str:
    """Return the key of the gateway that hosts with this configuration (an absolute path) share."""
    folders = [environ[name] and os.path.abspath(environ[name]) if name in environ else None for name in FOLDERS]
    parts = json.dumps([ATTACH, __version__, os.path.abspath(config), *folders])
    return hashlib.sha256(parts.encode("ascii")).hexdigest()[:24]


def variables_in(config: Path) -> frozenset[str]:
    """Return the environment variables that the configuration refers to; none if it cannot be read."""
    try:
        document: Mapping[str, Any] = read_document(config)
        if config.suffix.lower() == ".json":
            document = translate_document(document).document
    except ConfigError:
        return frozenset()
    return frozenset(name for name, _ in references(document))


def fingerprints(names: Iterable[str], environ: Mapping[str, str], salt: str) -> dict[str, str | None]:
    """Return a digest of each variable's value, None if it is not set: enough to compare, and not to read it."""
    short = sorted(name for name in names if len(name) <= _LONGEST_VARIABLE)
    return {name: _digest(environ.get(name), salt) for name in short[:_MOST_VARIABLES]}


def differing(told: Mapping[str, Any], environ: Mapping[str, str], salt: str) -> list[str]:
    """Return the variables whose values differ between the relay, which has `told` these digests, and `environ`."""
    return sorted(name for name, digest in told.items() if digest != _digest(environ.get(name), salt))


def new_salt() -> str:
    """Return a salt for the digests of one connection."""
    return secrets.token_hex(16)


def _digest(value: str | None, salt: str) -> str | None:
    if value is None:
        return None
    return hmac.new(salt.encode(), value.encode("utf-8", "surrogateescape"), "sha256").hexdigest()[:_DIGEST]
