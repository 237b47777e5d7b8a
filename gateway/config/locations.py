"""Parsing `[store] url`, the location of stored content: the kind of store, the place in it, and query options.

    memory://
    file:///var/lib/mcp-gateway
    s3://bucket/prefix?endpoint=https://minio.example&region=eu-west-1
    gs://bucket/prefix
    az://container/prefix?account_name=example

Credentials are never part of it: they come from the environment, as for the tools of each service.
"""

import re
from dataclasses import dataclass, field
from typing import Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

Scheme = Literal["memory", "file", "s3", "gs", "az"]

_SCHEMES = ("memory", "file", "s3", "gs", "az")
_OTHER_NAMES = {"s3a": "s3", "gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_OPTION = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SECRET = re.compile(
    r"secret|token|passw|sas|credential|(access|account|master|storage)_?key|service_account_key|bearer"
)
_SHOWN = ("endpoint", "region", "account_name")
"""Options that `masked` shows."""


@dataclass(frozen=True)
class Location:
    """A store's url, parsed."""

    scheme: Scheme
    place: str = ""
    """The bucket or container; for `file`, the folder; for `memory`, empty."""
    prefix: str = ""
    """The common prefix of the names of all objects, without a slash at either end."""
    options: dict[str, str] = field(default_factory=dict[str, str])
    """The options of the query, by the lower-case names that the service's own tools use."""

    @property
    def masked(self) -> str:
        """The url for people: without options that nobody needs to see."""
        if self.scheme == "memory":
            return "memory://"
        if self.scheme == "file":
            return f"file://{'' if self.place.startswith('/') else '/'}{self.place}"
        shown = [f"{name}={self.options[name]}" for name in _SHOWN if name in self.options]
        hidden = ["..."] if len(shown) < len(self.options) else []
        query = "&".join([*shown, *hidden])
        return f"{self.scheme}://{self.place}{'/' if self.prefix else ''}{self.prefix}{'?' if query else ''}{query}"


def location(url: str) -> Location:
    """Parse a store's url.

    Raises:
        ValueError: it is invalid, or contains credentials. The message repeats only names from it.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("is not a url") from None
    scheme = _OTHER_NAMES.get(parts.scheme, parts.scheme)
    if scheme not in _SCHEMES or "://" not in url:
        raise ValueError(f"must begin with one of {', '.join(f'{one}://' for one in _SCHEMES)}")
    if parts.username is not None or parts.password is not None or port is not None:
        raise ValueError(
            "holds a user, a password or a port: credentials come from the environment, see docs/stores.md"
        )
    if parts.fragment:
        raise ValueError("has a part after '#': write %23 where that is meant")
    if scheme in ("memory", "file"):
        return _local(scheme, parts.netloc, parts.path, parts.query)
    if not _NAME.fullmatch(parts.netloc):
        raise ValueError(f"names no bucket or container: write {scheme}://name/prefix")
    prefix = unquote(parts.path).strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        raise ValueError("has an empty part, '.' or '..' in its prefix")
    return Location(cast("Scheme", scheme), parts.netloc, prefix, _options(parts.query))


def _local(scheme: str, host: str, path: str, query: str) -> Location:
    if query:
        raise ValueError(f"has a query, and {scheme}:// takes no options")
    if scheme == "memory":
        if host or path.strip("/"):
            raise ValueError("has a path, and memory:// has none")
        return Location("memory")
    folder = unquote(path)
    if host not in ("", "localhost") or not folder.strip("/"):
        raise ValueError("names no folder: write file:///var/lib/mcp-gateway, with three slashes")
    # file:///C:/content is C:/content on Windows.
    return Location("file", folder[1:] if re.match(r"/[A-Za-z]:/", folder) else folder)


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for given, value in parse_qsl(query, keep_blank_values=True):
        name = given.strip().lower()
        if not _OPTION.fullmatch(name):
            raise ValueError("has an option with an invalid name: write ?endpoint=https://...&region=...")
        if _SECRET.search(name) and not name.endswith("_file"):
            raise ValueError(f"holds a credential ({name}): give it in the environment, see docs/stores.md")
        if name in options:
            raise ValueError(f"gives {name} twice")
        if re.match(r"[a-z0-9+.-]+://[^/]*@", value, re.IGNORECASE):
            raise ValueError(f"holds a user or a password in {name}: credentials come from the environment")
        options[name] = value
    return options
