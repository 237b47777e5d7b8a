"""Settings without a file: upstreams given on the command line."""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from gateway.config.foreign import upstream_name
from gateway.config.load_settings import TOKEN_VARIABLE
from gateway.config.problems import config_error
from gateway.config.schema import Settings
from gateway.config.server_names import name_for_command
from gateway.config.validation import validate
from gateway.errors import ConfigError


def settings_from_arguments(
    upstream_urls: Sequence[str], command: Sequence[str], *, environ: Mapping[str, str] = os.environ
) -> Settings:
    """Create settings with an upstream for every URL, and one for `command` (a program and its arguments), if given.

    An upstream is named after its URL's host, or its package or program, made valid and unique.

    Raises:
        ConfigError: an invalid URL (it is not repeated in the message: it may contain a secret).
    """
    upstreams: dict[str, Any] = {}
    for url in upstream_urls:
        upstreams[upstream_name(_host(url), upstreams)] = {"url": url}
    if command:
        name = name_for_command(command[0], command[1:])
        upstreams[upstream_name(name, upstreams)] = {"command": command[0], "args": list(command[1:])}
    token = environ.get(TOKEN_VARIABLE) or None
    settings, problems = validate(Settings, {"upstreams": upstreams, "http": {"token": token}})
    if settings is None:
        raise config_error("command line", problems)
    return settings


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if not host:
        raise ConfigError(
            "is not the address of a server",
            where="--upstream",
            remedy="give it as http://host/path or https://host/path; "
            "a server of the configuration needs no --upstream",
        )
    return host
