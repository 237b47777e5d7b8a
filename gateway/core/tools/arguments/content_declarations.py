"""Reading from a place in a schema whether it takes content. Standards, drafts and habits, each with its source.

contentEncoding, contentMediaType   https://json-schema.org/draft/2020-12/json-schema-validation#section-8
format: byte, binary                https://spec.openapis.org/oas/v3.0.3#data-types (`base64`: pydantic's Base64Bytes)
format: data-url                    https://rjsf-team.github.io/react-jsonschema-form/docs/usage/widgets/#file-widgets
x-mcp-file, earlier mcpFile         https://github.com/modelcontextprotocol/modelcontextprotocol/pull/2356
x-blazen-content-ref                Blazen's guide to multimodal tools: `{"kind": "image"}`, filled in as a typed object
x-mcp-content-ref                   the same under a neutral name
openai/fileParams                   https://developers.openai.com/apps-sdk/reference
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.core.model.kinds import Kind, kind_of
from gateway.core.model.media_types import EXTENSIONS, UNINFORMATIVE
from gateway.core.model.wire import WireObject
from gateway.core.tools.arguments.parameters import Form, Parameter, Path

CONTENT_TAGS = ("x-blazen-content-ref", "x-mcp-content-ref")
FILE_TAGS = ("x-mcp-file", "mcpFile")
_FORMATS: Mapping[str, Form] = {
    "byte": "base64",
    "binary": "base64",
    "base64": "base64",
    "data-url": "data-uri",
    "data-uri": "data-uri",
}
_KINDS: Mapping[str, Kind] = {
    "image": "image",
    "audio": "audio",
    "video": "video",
    "document": "document",
    "3d": "3d",
    "three_d": "3d",
    "three_d_model": "3d",
    "cad": "cad",
}
_FAMILIES: tuple[Kind, ...] = ("image", "audio", "video")
_MEDIA_TYPE = re.compile(
    r"(?:image|audio|video|photo|document|file|input|source|data|media|blob)?(?:mime|media|content)type"
)
_TYPES_OF = {f".{ending}": media_type for media_type, ending in EXTENSIONS.items()} | {".jpeg": "image/jpeg"}


def declared_parameter(schema: WireObject, path: Path) -> Parameter | None:
    """Return the parameter that a schema declares by tags, format or encoding; None if it does not take content."""
    for tag in CONTENT_TAGS:
        if tag in schema:
            return Parameter(path, "object", _tagged_kind(schema[tag]))
    for tag in FILE_TAGS:
        if tag in schema and schema[tag] is not False:
            return _file(schema[tag], path)
    if "string" not in schema_types(schema) and "contentEncoding" not in schema:
        return None
    encoding, shape = schema.get("contentEncoding"), schema.get("format")
    form = _FORMATS.get(shape) if isinstance(shape, str) else None
    if isinstance(encoding, str) and encoding.lower() == "base64":
        form = "base64"
    if form is None:
        return None
    accepts = _accepted((schema.get("contentMediaType"),))
    return Parameter(path, form, _common_kind(accepts), accepts)


def paired(properties: WireObject, path: Path) -> Parameter | None:
    """Return the parameter of an object that has base64 in one member and the media type in another.

    There must be exactly one of each, such as `data` + `mimeType`, or `image_base64` + `media_type`.
    """
    texts = {name: cast("WireObject", schema) for name, schema in properties.items() if _is_text(schema)}
    tagged = {name: found for name, schema in texts.items() if (found := declared_parameter(schema, (*path, name)))}
    named = [name for name in texts if name in tagged or _is_encoded(_folded(name))]
    beside = [name for name in texts if name not in tagged and _is_media_type(_folded(name))]
    if len(named) != 1 or len(beside) != 1:
        return None
    choices: Any = texts[beside[0]].get("enum")
    accepts = _accepted(choices if is_list(choices) else [texts[beside[0]].get("const")])
    base = tagged.get(named[0], Parameter((*path, named[0]), "base64"))
    said = next((kind for kind in _FAMILIES if kind in _folded(named[0])), None) or _block_kind(properties)
    kind = base.kind or said or _common_kind(accepts)
    return replace(base, kind=kind, accepts=base.accepts or accepts, beside=beside[0])


def openai_file(path: Path) -> Parameter:
    """Return a parameter that `openai/fileParams` names."""
    return Parameter(path, "openai-file")


def schema_types(schema: WireObject) -> frozenset[str]:
    """Return the JSON types that a schema names, itself or in its branches."""
    named = schema.get("type")
    names = named if is_list(named) else [named]
    branches = (one.get("type") for one in branches_of(schema) if is_object(one))
    return frozenset(name for name in (*names, *branches) if isinstance(name, str))


def branches_of(schema: WireObject) -> list[Any]:
    """Return the schemas under `anyOf` and `oneOf`."""
    found = (schema.get(key) for key in ("anyOf", "oneOf"))
    return [branch for branches in found if is_list(branches) for branch in branches]


def is_plain_text(schema: Any) -> bool:
    """Whether a schema accepts any text, or any URL."""
    if not is_object(schema):
        return False
    return "string" in schema_types(schema) and schema.get("format") in (None, "uri", "url") and "enum" not in schema


def _file(tag: Any, path: Path) -> Parameter:
    said = as_object(tag)
    accept: Any = said.get("accept")
    listed = accept if is_list(accept) else [accept]
    accepts = _accepted([_TYPES_OF.get(one.lower(), one) if isinstance(one, str) else None for one in listed])
    most = said.get("maxSize")
    limit = most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else None
    return Parameter(path, "named-data-uri", _common_kind(accepts), accepts, limit)


def _accepted(named: Sequence[Any]) -> tuple[str, ...]:
    """Return the named media types, each once; empty if one of them is too general, or not a media type."""
    types = [one.split(";", 1)[0].strip().lower() if isinstance(one, str) else "" for one in named]
    sound = all("/" in one and one not in UNINFORMATIVE and "[" not in one for one in types)
    return tuple(dict.fromkeys(types)) if sound else ()


def _tagged_kind(tag: Any) -> Kind | None:
    kind: Any = tag.get("kind") if is_object(tag) else tag
    return _KINDS.get(kind.lower()) if isinstance(kind, str) else None


def _common_kind(accepts: Sequence[str]) -> Kind | None:
    kinds: set[Kind] = {kind_of(one.replace("*", "any")) for one in accepts}
    found = kinds.pop() if len(kinds) == 1 else None
    return None if found == "other" else found


def _block_kind(properties: WireObject) -> Kind | None:
    """Return the kind that an MCP content block names in its `type`."""
    named = properties.get("type")
    const = as_object(named).get("const")
    return next((kind for kind in _FAMILIES if kind == const), None)


def _folded(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _is_encoded(folded: str) -> bool:
    return folded in ("data", "blob") or "base64" in folded or folded.endswith("b64")


def _is_media_type(folded: str) -> bool:
    return _MEDIA_TYPE.fullmatch(folded) is not None


def _is_text(schema: Any) -> bool:
    return is_object(schema) and "string" in schema_types(schema)
