"""The gateway's own prompt and resource, which list the content that can be given to tools."""

from typing import Any

from gateway.content.store import URI_SCHEME, ContentStore
from gateway.core.own_names import CONTENT_PROMPT
from gateway.core.tools.inputs import directory_note
from gateway.errors import InvalidRequest

DIRECTORY_URI = f"{URI_SCHEME}directory"
"""Cannot clash with a handle, because no handle looks like this."""

PROMPTS: tuple[dict[str, Any], ...] = (
    {
        "name": CONTENT_PROMPT,
        "title": "Content that tools can take",
        "description": "Tells the model which content of this conversation it can pass to tools, by its handle.",
    },
)

RESOURCE: dict[str, Any] = {
    "uri": DIRECTORY_URI,
    "name": "directory",
    "title": "Content that tools can take",
    "mimeType": "text/plain",
}


async def read_directory(store: ContentStore, *, owner: str) -> dict[str, Any]:
    """Return the raw result of `resources/read` for the directory."""
    note = directory_note(await store.list(owner=owner))
    return {"contents": [{"uri": DIRECTORY_URI, "mimeType": "text/plain", "text": note}]}


async def directory_prompt(name: Any, store: ContentStore, *, owner: str) -> dict[str, Any]:
    """Return the raw result of `prompts/get`. Raises InvalidRequest if there is no such prompt."""
    if name != CONTENT_PROMPT:
        raise InvalidRequest("the gateway has no prompt of this name", remedy="list the prompts again")
    note = directory_note(await store.list(owner=owner))
    return {"messages": [{"role": "user", "content": {"type": "text", "text": note}}]}
