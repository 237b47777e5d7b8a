"""Which server an upstream is: what it says it is, and the command or URL that it is reached by, without secrets."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway.config.secrets import HIDDEN, SECRET_NAME, hide, longest_first, upstream_secrets
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object, as_text

_LONGEST = 300
_SHORTEST_SECRET = 4


def identity_of(settings: UpstreamSettings, server_info: Mapping[str, Any] | None) -> dict[str, str]:
    """Return `name` and `version` as the server gives them, and `command` or `url`."""
    info = as_object(server_info)
    secrets = longest_first(upstream_secrets(settings), _SHORTEST_SECRET)
    said = {key: plain(as_text(info.get(key)) or "", 100) for key in ("name", "version")}
    if settings.endpoint is not None:
        parts = urlsplit(settings.endpoint)
        where = {"url": f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"}
    else:
        where = {"command": " ".join([settings.command or "", *_shown_arguments(settings.args)])}
    shown = {key: plain(hide(text, secrets), _LONGEST) for key, text in where.items()}
    return {key: text for key, text in {**said, **shown}.items() if text}


def _shown_arguments(arguments: tuple[str, ...]) -> Iterator[str]:
    """Yield the arguments; what an option named like a secret is given is hidden."""
    hides_next = False
    for argument in arguments:
        name, separator, _ = argument.partition("=")
        is_option = name.startswith("-") and SECRET_NAME.search(name) is not None
        if hides_next and not argument.startswith("-"):
            yield HIDDEN
        elif is_option and separator:
            yield f"{name}={HIDDEN}"
        else:
            yield argument
        hides_next = is_option and not separator
