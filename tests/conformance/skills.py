"""The skills of the conformance tests' upstream (SEP-2640): two of them, one below a prefix, with directories."""

import hashlib
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

EXTENSION = "io.modelcontextprotocol/skills"
DIRECTORY = "inode/directory"
_HINTS = {"ttlMs": 1_000, "cacheScope": "public", "resultType": "complete"}


def _manifest(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\nlicense: MIT\n---\n\n# {name}\n\nSee references/GUIDE.md.\n"


DESCRIPTIONS = {
    "skill://git-workflow": ("git-workflow", "Follow the conventions for branches and commits"),
    "skill://acme/billing/refunds": ("refunds", "Process requests for refunds"),
}
FILES = {
    **{f"{root}/SKILL.md": _manifest(*about) for root, about in DESCRIPTIONS.items()},
    **{f"{root}/references/GUIDE.md": "# Guide\n\nBe kind.\n" for root in DESCRIPTIONS},
}


def listed() -> list[dict[str, Any]]:
    """The manifests as resources."""
    return [
        {"uri": f"{root}/SKILL.md", "name": name, "description": description, "mimeType": "text/markdown"}
        for root, (name, description) in DESCRIPTIONS.items()
    ]


def contents(uri: str) -> dict[str, Any] | None:
    """The content of a file."""
    return {"uri": uri, "mimeType": "text/markdown", "text": FILES[uri]} if uri in FILES else None


def _entry(root: str) -> dict[str, Any]:
    name, description = DESCRIPTIONS[root]
    files = [
        {"uri": uri, "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", "size": len(text.encode())}
        for uri, text in FILES.items()
        if uri.startswith(f"{root}/")
    ]
    front = {"name": name, "description": description, "license": "MIT"}
    return {"uri": f"{root}/SKILL.md", "frontmatter": front, "resources": files}


class _Named(types.RequestParams):
    uri: str


class _Paged(types.RequestParams):
    cursor: str | None = None


async def _list_skills(context: Any, params: _Paged) -> dict[str, Any]:
    """One skill on a page."""
    roots, start = list(DESCRIPTIONS), int(params.cursor or 0)
    more = {"nextCursor": str(start + 1)} if start + 1 < len(roots) else {}
    return {"skills": [_entry(root) for root in roots[start : start + 1]], **_HINTS, **more}


async def _get_skill(context: Any, params: _Named) -> dict[str, Any]:
    root = params.uri.removesuffix("/SKILL.md")
    if root == params.uri or root not in DESCRIPTIONS:
        raise MCPError(types.INVALID_PARAMS, f"no skill is served at {params.uri}")
    return {"skill": _entry(root), **_HINTS}


async def _read_directory(context: Any, params: _Named) -> dict[str, Any]:
    below = {uri.removeprefix(f"{params.uri}/").partition("/")[:2] for uri in FILES if uri.startswith(f"{params.uri}/")}
    if not below:
        raise MCPError(types.INVALID_PARAMS, f"{params.uri} is not a directory")
    children = [
        {"uri": f"{params.uri}/{name}", "name": name, "mimeType": DIRECTORY if slash else "text/markdown"}
        for name, slash in sorted(below)
    ]
    return {"resources": children, "resultType": "complete"}


async def _declaring(context: Any, call_next: Any) -> Any:
    """In the handshake era the SDK leaves extensions out, though servers declare them there as well."""
    result = await call_next(context)
    if context.method != "initialize":
        return result
    declared = result if isinstance(result, dict) else result.model_dump(by_alias=True, mode="json", exclude_none=True)
    declared["capabilities"]["extensions"] = {EXTENSION: {"directoryRead": True}}
    return declared


def add_skills(server: Server[Any]) -> None:
    """Let a server have the skills; their files are for its own `resources/read`."""
    server.extensions[EXTENSION] = {"directoryRead": True}
    declaring: Any = _declaring
    server.middleware.append(declaring)
    server.add_request_handler("skills/list", _Paged, _list_skills)
    server.add_request_handler("skills/get", _Named, _get_skill)
    server.add_request_handler("resources/directory/read", _Named, _read_directory)
