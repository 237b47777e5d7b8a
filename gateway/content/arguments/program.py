"""Resolve handles in the arguments of a program's own tools: `gateway.resolve_arguments`."""

from collections.abc import Mapping
from typing import Any

from gateway.config.content_settings import LimitSettings
from gateway.content.arguments.files import TemporaryFiles
from gateway.content.arguments.resolve_content import Arguments
from gateway.content.store import ContentStore
from gateway.core.tools.arguments import PossibleForms, find_parameters

_PROGRAM = "this program"


async def resolve_arguments(
    schema: Mapping[str, Any],
    arguments: Mapping[str, Any],
    store: ContentStore,
    *,
    owner: str = "local",
    limits: LimitSettings | None = None,
) -> dict[str, Any]:
    """Return the arguments of a call with handles replaced by their content, in the form that the schema asks for.

    This is for tools that the program runs itself; a gateway gives its tools their content. Where `schema` has the tag
    of `gateway.image_input` or a similar helper, the value becomes `{"kind", "handle_id", "mime_type", "byte_size",
    "display_name", "source": {"type": "base64", "data"}}`; where it asks for base64 or a data URI, the value becomes
    that. Everything else stays unchanged, and so does `arguments` itself.

    Args:
        schema: the JSON schema of the tool's arguments.
        arguments: the arguments from the model.
        store: the store that has the content.
        owner: the owner of the content; content of other owners is not found.
        limits: `call_bytes` limits how many bytes one call gets.

    Raises:
        ArgumentError: content is missing, of the wrong kind, or too large. The message names the argument.
    """
    parameters = find_parameters({"inputSchema": schema}, {}, PossibleForms()).parameters
    resolver = Arguments(store, limits or LimitSettings(), TemporaryFiles(None))
    async with resolver.given(arguments, parameters, owner=owner, upstream=_PROGRAM, accept="any") as resolved:
        return dict(resolved)
