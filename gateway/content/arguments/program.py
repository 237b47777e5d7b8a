"""Handles in the arguments of a program's own tools: `gateway.resolve_arguments`."""

from collections.abc import Mapping
from typing import Any

from gateway.config.schema import LimitSettings
from gateway.content.arguments.files import TemporaryFiles
from gateway.content.arguments.resolve_content import Arguments
from gateway.content.store import ContentStore
from gateway.core.tools.arguments import ContentForm, find_parameters

_PROGRAM = "this program"


async def resolve_arguments(
    schema: Mapping[str, Any],
    arguments: Mapping[str, Any],
    store: ContentStore,
    *,
    owner: str = "local",
    limits: LimitSettings | None = None,
) -> dict[str, Any]:
    """The arguments of a call with the content that their handles stand for, each in the form that the schema asks for.

    For a tool that the program runs itself; tools of a gateway get their content from the gateway. Where `schema` has
    the tag of `gateway.image_input` and its like, the value becomes `{"kind", "handle_id", "mime_type", "byte_size",
    "display_name", "source": {"type": "base64", "data"}}`; where it asks for base64 or a data URI, that. Everything
    else stays as it is, and `arguments` are not changed.

    Args:
        schema: the tool's JSON schema of its arguments.
        arguments: as the model gave them.
        store: where the handles lead.
        owner: whose content may be read; what belongs to others is not there.
        limits: `call_bytes` is how many bytes one call may be given.

    Raises:
        ArgumentError: content is not there, of the wrong kind, or too large. The message names the argument.
    """
    parameters = find_parameters({"inputSchema": schema}, {}, ContentForm()).parameters
    resolver = Arguments(store, limits or LimitSettings(), TemporaryFiles(None))
    async with resolver.given(arguments, parameters, owner=owner, upstream=_PROGRAM, accept="any") as resolved:
        return dict(resolved)
