"""The URIs of pages and skills: for hosts, the upstream's name is put in front, so that two servers may use the same.

    ui://clock/app.html of the upstream `a`       <->   ui://a/clock/app.html
    skill://refunds/SKILL.md of the upstream `a`  <->   skill://a/refunds/SKILL.md

This is done always, not only if two URIs collide: hosts store the URI of a page with a conversation, and that of a
skill with its approval, so it must not change when another server is added. As no upstream's name contains a slash, the
name can be recognised and removed again.
"""

from typing import Any

from gateway.core.apps.tools import PAGE_KEYS
from gateway.core.model.json_values import is_list, is_object
from gateway.core.model.wire import WireObject

SCHEME = "ui://"
SKILL_SCHEME = "skill://"
"""The scheme of skills, and of their files and directories (https://modelcontextprotocol.io/seps/2640-skills-extension)."""

_PREFIXED = (SCHEME, SKILL_SCHEME)

_REMOTE_DOM = "application/vnd.mcp-ui."
_PAGE_TYPES = frozenset({"text/html", "text/uri-list"})


def is_embedded_page(uri: str, media_type: str | None) -> bool:
    """Whether an embedded resource is a page for the host to show, as provided by servers that use mcp-ui.

    That is HTML, the address of a page, or a script that builds one. Sources: https://mcpui.dev/guide/protocol-details;
    hosts decide by the scheme alone (block/goose#2948, danny-avila/LibreChat@001f16d8 packages/api/src/mcp/parsers.ts).
    """
    base = (media_type or "").partition(";")[0].strip().lower()
    return uri.startswith(SCHEME) and (base in _PAGE_TYPES or base.startswith(_REMOTE_DOM))


def address_in_list(uri_list: str) -> str | None:
    """Return the address in a page of the type `text/uri-list`: the first one (RFC 2483, section 5)."""
    lines = (line.strip() for line in uri_list.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), None)


def outward(upstream: str, uri: str) -> str:
    """Return the URI, or URI template, in the form for hosts; other schemes are returned unchanged."""
    scheme = _scheme(uri)
    return uri if scheme is None else f"{scheme}{upstream}/{uri.removeprefix(scheme)}"


def split(uri: str) -> tuple[str, str] | None:
    """Split the URI of a page or skill into the name in front, which need not be an upstream, and the URI without it.

    None for another scheme, or if there is no name in front.
    """
    scheme = _scheme(uri)
    if scheme is None:
        return None
    front, slash, rest = uri.removeprefix(scheme).partition("/")
    return (front, scheme + rest) if front and slash else None


def is_prefixed(uri: str) -> bool:
    """Whether hosts know such a URI with the upstream's name in front."""
    return _scheme(uri) is not None


def _scheme(uri: str) -> str | None:
    return next((scheme for scheme in _PREFIXED if uri.startswith(scheme)), None)


def inward(upstream: str, uri: str) -> str:
    """Return a URI as this upstream knows it: the upstream's name is removed from the front, if it is there."""
    parts = split(uri)
    return parts[1] if parts is not None and parts[0] == upstream else uri


def outward_meta(upstream: str, meta: Any) -> Any:
    """Rewrite the page URI in the `_meta` of a tool or result for hosts; the same object if there is none."""
    if not is_object(meta):
        return meta
    changed = {key: outward(upstream, uri) for key in PAGE_KEYS if isinstance(uri := meta.get(key), str)}
    edited: dict[str, Any] = {key: uri for key, uri in changed.items() if uri != meta[key]}
    interface = meta.get("ui")
    if is_object(interface):
        uri = interface.get("resourceUri")
        if isinstance(uri, str) and (rewritten := outward(upstream, uri)) != uri:
            edited["ui"] = {**interface, "resourceUri": rewritten}
    # Edited in place, so that the order of the members stays and nothing else changes.
    return {key: edited.get(key, value) for key, value in meta.items()} if edited else meta


def outward_result(upstream: str, result: WireObject) -> WireObject:
    """Rewrite the URIs of pages and skills in a tool's result for hosts: in its `_meta`, links and embedded resources.

    Everything else stays the same object; without such a URI, the result itself is returned.
    """
    edited: dict[str, Any] = {}
    if (meta := outward_meta(upstream, result.get("_meta"))) is not result.get("_meta"):
        edited["_meta"] = meta
    content = result.get("content")
    if is_list(content):
        blocks = [_outward_block(upstream, block) for block in content]
        if any(rewritten is not block for rewritten, block in zip(blocks, content, strict=True)):
            edited["content"] = blocks
    return {key: edited.get(key, value) for key, value in result.items()} if edited else result


def outward_prompt(upstream: str, result: dict[str, Any]) -> dict[str, Any]:
    """Rewrite the URIs of pages and skills in a result of `prompts/get` for hosts; the same object if there is none."""
    messages = result.get("messages")
    if not is_list(messages):
        return result
    rewritten = [_outward_message(upstream, each) for each in messages]
    if all(new is old for new, old in zip(rewritten, messages, strict=True)):
        return result
    return {key: rewritten if key == "messages" else value for key, value in result.items()}


def outward_contents(upstream: str, result: dict[str, Any]) -> dict[str, Any]:
    """Rewrite the URIs of pages and skills in a result of `resources/read` for hosts."""
    contents = result.get("contents")
    if not is_list(contents):
        return result
    rewritten = [_outward_uri(upstream, each) if is_object(each) else each for each in contents]
    return {**result, "contents": rewritten}


def _outward_message(upstream: str, message: Any) -> Any:
    if not is_object(message):
        return message
    content = message.get("content")
    if is_list(content):  # some servers write several blocks where the protocol allows one
        rewritten: Any = [_outward_block(upstream, block) for block in content]
        is_same = all(new is old for new, old in zip(rewritten, content, strict=True))
    else:
        rewritten = _outward_block(upstream, content)
        is_same = rewritten is content
    return message if is_same else {key: rewritten if key == "content" else value for key, value in message.items()}


def _outward_block(upstream: str, block: Any) -> Any:
    if not is_object(block):
        return block
    if block.get("type") == "resource_link":
        return _outward_uri(upstream, block)
    resource = block.get("resource") if block.get("type") == "resource" else None
    if not is_object(resource):
        return block
    rewritten = _outward_uri(upstream, resource)
    return block if rewritten is resource else {**block, "resource": rewritten}


def _outward_uri(upstream: str, named: WireObject) -> WireObject:
    uri = named.get("uri")
    if not isinstance(uri, str) or (rewritten := outward(upstream, uri)) == uri:
        return named
    return {**named, "uri": rewritten}
