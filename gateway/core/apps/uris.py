"""The uris of pages: towards hosts, the upstream stands in front, so that two servers may use the same uri.

    ui://clock/app.html of the upstream `a`   <->   ui://a/clock/app.html

Always, not only where two uris collide: hosts keep the uri of a page with a conversation, so it must not change when
another server is added. No upstream's name has a slash in it, so what stands in front can be told and taken off again.
"""

from typing import Any

from gateway.core.apps.tools import PAGE_KEYS
from gateway.core.model.json_values import is_list, is_object
from gateway.core.model.wire import WireObject

SCHEME = "ui://"

_REMOTE_DOM = "application/vnd.mcp-ui."
_PAGE_TYPES = frozenset({"text/html", "text/uri-list"})


def is_embedded_page(uri: str, media_type: str | None) -> bool:
    """Whether an embedded resource is a page that the host is to show, as servers built with mcp-ui give them.

    HTML, the address of a page, or a script that builds one. Sources: https://mcpui.dev/guide/protocol-details;
    hosts go by the scheme alone (block/goose#2948, danny-avila/LibreChat@001f16d8 packages/api/src/mcp/parsers.ts).
    """
    base = (media_type or "").partition(";")[0].strip().lower()
    return uri.startswith(SCHEME) and (base in _PAGE_TYPES or base.startswith(_REMOTE_DOM))


def address_in_list(uri_list: str) -> str | None:
    """The address that a page of the type `text/uri-list` is at: the first that there is (RFC 2483, section 5)."""
    lines = (line.strip() for line in uri_list.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), None)


def outward(upstream: str, uri: str) -> str:
    """The uri, or uri template, as hosts are told it; other schemes stay as they are."""
    return f"{SCHEME}{upstream}/{uri.removeprefix(SCHEME)}" if uri.startswith(SCHEME) else uri


def split(uri: str) -> tuple[str, str] | None:
    """What stands in front of a page's uri, which need not be an upstream, and the uri without it.

    None for another scheme, and where nothing stands in front.
    """
    if not uri.startswith(SCHEME):
        return None
    front, slash, rest = uri.removeprefix(SCHEME).partition("/")
    return (front, SCHEME + rest) if front and slash else None


def inward(upstream: str, uri: str) -> str:
    """A uri as this upstream knows it: the upstream itself is taken off the front, if it stands there."""
    parts = split(uri)
    return parts[1] if parts is not None and parts[0] == upstream else uri


def outward_meta(upstream: str, meta: Any) -> Any:
    """The `_meta` of a tool or of a result with its page's uri as hosts are told it; the very same without one."""
    if not is_object(meta):
        return meta
    changed = {key: outward(upstream, uri) for key in PAGE_KEYS if isinstance(uri := meta.get(key), str)}
    edited: dict[str, Any] = {key: uri for key, uri in changed.items() if uri != meta[key]}
    interface = meta.get("ui")
    if is_object(interface):
        uri = interface.get("resourceUri")
        if isinstance(uri, str) and (told := outward(upstream, uri)) != uri:
            edited["ui"] = {**interface, "resourceUri": told}
    # In place, so that the order of the members stays: nothing else of it may change.
    return {key: edited.get(key, value) for key, value in meta.items()} if edited else meta


def outward_result(upstream: str, result: WireObject) -> WireObject:
    """A result of a tool with the uris of pages as hosts are told them: in its `_meta`, links, embedded resources.

    Everything else stays the same, down to the very objects; without such a uri, the result itself is returned.
    """
    edited: dict[str, Any] = {}
    if (meta := outward_meta(upstream, result.get("_meta"))) is not result.get("_meta"):
        edited["_meta"] = meta
    content = result.get("content")
    if is_list(content):
        blocks = [_outward_block(upstream, block) for block in content]
        if any(told is not block for told, block in zip(blocks, content, strict=True)):
            edited["content"] = blocks
    return {key: edited.get(key, value) for key, value in result.items()} if edited else result


def outward_prompt(upstream: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result of `prompts/get` with the uris of pages as hosts are told them; the same without one."""
    messages = result.get("messages")
    if not is_list(messages):
        return result
    told = [_outward_message(upstream, each) for each in messages]
    if all(new is old for new, old in zip(told, messages, strict=True)):
        return result
    return {key: told if key == "messages" else value for key, value in result.items()}


def outward_contents(upstream: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result of `resources/read` with the uris of pages as hosts are told them."""
    contents = result.get("contents")
    if not is_list(contents):
        return result
    told = [_outward_uri(upstream, each) if is_object(each) else each for each in contents]
    return {**result, "contents": told}


def _outward_message(upstream: str, message: Any) -> Any:
    if not is_object(message):
        return message
    content = message.get("content")
    if is_list(content):  # some servers write several blocks where the protocol has one
        told: Any = [_outward_block(upstream, block) for block in content]
        is_same = all(new is old for new, old in zip(told, content, strict=True))
    else:
        told = _outward_block(upstream, content)
        is_same = told is content
    return message if is_same else {key: told if key == "content" else value for key, value in message.items()}


def _outward_block(upstream: str, block: Any) -> Any:
    if not is_object(block):
        return block
    if block.get("type") == "resource_link":
        return _outward_uri(upstream, block)
    resource = block.get("resource") if block.get("type") == "resource" else None
    if not is_object(resource):
        return block
    told = _outward_uri(upstream, resource)
    return block if told is resource else {**block, "resource": told}


def _outward_uri(upstream: str, named: WireObject) -> WireObject:
    uri = named.get("uri")
    if not isinstance(uri, str) or (told := outward(upstream, uri)) == uri:
        return named
    return {**named, "uri": told}
