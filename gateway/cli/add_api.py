"""The upstream that `mcp-gateway add --openapi` writes: an OpenAPI document, and the address of the API."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.cli.exit_codes import refuse
from gateway.cli.terminal import say
from gateway.config.openapi_settings import OperationSettings
from gateway.config.setting_types import is_url
from gateway.core.fact_words import plain
from gateway.errors import ConfigError, GatewayError


def api_upstream(place: str, words: Sequence[str], headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the upstream as a table of mcp-gateway.toml. `words` has the URL of the API, if it was given.

    Raises:
        ConfigError: the document cannot be read or used.
    """
    if len(words) > 1 or (words and not is_url(words[0])):
        refuse("give one URL, that of the API: mcp-gateway add NAME --openapi FILE https://api.example.com/v1")
    upstream: dict[str, Any] = {"openapi": place if is_url(place) else str(Path(place).expanduser().absolute())}
    if words:
        upstream["base_url"] = words[0]
    if not is_url(place):
        named = _server_in(Path(upstream["openapi"]))
        if not words:
            upstream["base_url"] = named or refuse(
                "the document does not say where the API is: give its URL after the document"
            )
            say(f"the API is at {plain(upstream['base_url'], 200)}, as the document says")
    return {**upstream, **({"headers": dict(headers)} if headers else {})}


def _server_in(file: Path) -> str | None:
    """Return the address of the API that a document names, if it names one. The document has to be usable."""
    from gateway.core.model.json_values import objects_in
    from gateway.upstream.openapi.document import parse_document
    from gateway.upstream.openapi.operations import server_url

    most = OperationSettings().max_document
    try:
        with file.open("rb") as opened:
            content = opened.read(most + 1)
        if len(content) > most:
            raise ConfigError("is larger than the gateway reads", where=str(file), remedy="see operations.max_document")
        servers = objects_in(parse_document(content).root.get("servers"))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(file)) from None
    except ConfigError:
        raise
    except GatewayError as error:
        raise ConfigError(error.message, where=str(file), remedy=error.remedy) from None
    found = server_url(servers[0], "") if servers else ""
    return found.rstrip("/") if is_url(found) else None
