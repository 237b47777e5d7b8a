"""Operations as MCP tools: their names, schemas and annotations, and which argument belongs to which parameter."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.config.openapi_settings import READING
from gateway.core.model.json_values import as_list, as_object, is_object
from gateway.core.model.media_types import UNINFORMATIVE, family
from gateway.upstream.openapi.document import Document
from gateway.upstream.openapi.operations import ApiBody, ApiParameter, Operation
from gateway.upstream.openapi.schemas import SchemaLibrary, ToolSchema

INPUT_BYTES = 16 * 1024
"""Size of the definitions in a tool's input schema; those beyond it accept any value."""
OUTPUT_BYTES = 8 * 1024
"""The same for its output schema, which is left out if it needs more."""

_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_BODY = "body"
_MOST_PROPERTIES = 500
_MOST_PARTS = 1_000
"""Maximum parts of `allOf`, at all levels, that are searched for an object."""


@dataclass(frozen=True)
class ApiTool:
    """A tool for an operation. `parameters` and `body_name` say what each argument is."""

    operation: Operation
    wire: Mapping[str, Any]
    parameters: Mapping[str, ApiParameter]
    body_name: str | None = None
    binary_parts: frozenset[str] = frozenset()
    """The parts of a form that are files: base64 in the arguments, bytes on the wire."""


@dataclass(frozen=True)
class Libraries:
    """The schemas of a document: of what operations are given, and of what they answer."""

    given: SchemaLibrary
    answered: SchemaLibrary

    @classmethod
    def of(cls, document: Document) -> "Libraries":
        """Return those of a document."""
        return cls(SchemaLibrary(document, "in"), SchemaLibrary(document, "out"))


def tool_for(
    libraries: Libraries, operation: Operation, given: Collection[str] = (), given_query: Collection[str] = ()
) -> ApiTool:
    """Return the tool for an operation. `given` are headers (in lower case) that the configuration sets, and
    `given_query` are query parameters: no model may set them.

    Raises:
        OutsideReference: its schemas refer to another document.
    """
    document, writer = libraries.given.document, ToolSchema(libraries.given, INPUT_BYTES)
    properties: dict[str, Any] = {}
    required: list[str] = []
    parameters: dict[str, ApiParameter] = {}
    for parameter in operation.parameters[:_MOST_PROPERTIES]:
        if _is_given(parameter, given, given_query):
            continue
        name = parameter.name if parameter.name not in parameters else f"{parameter.name}_{parameter.place}"
        parameters[name] = parameter
        properties[name] = _described(writer.write(parameter.schema), parameter.description)
        required += [name] if parameter.is_required else []
    body_name, binary = None, frozenset[str]()
    if operation.body is not None:
        body_name = _BODY if _BODY not in properties else "request_body"
        written, binary = _body_schema(document, writer, operation.body)
        properties[body_name] = _described(written, operation.body.description)
        required += [body_name] if operation.body.is_required else []
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    definitions, _ = writer.definitions()
    if definitions:
        schema["$defs"] = definitions
    wire: dict[str, Any] = {"name": operation.name, "description": _description(operation), "inputSchema": schema}
    if operation.summary:
        wire["title"] = operation.summary
    wire["annotations"] = _annotations(operation)
    if (output := _output_schema(libraries.answered, operation)) is not None:
        wire["outputSchema"] = output
    return ApiTool(operation, wire, parameters, body_name, binary)


def _is_given(parameter: ApiParameter, given: Collection[str], given_query: Collection[str]) -> bool:
    match parameter.place:
        case "header":
            return parameter.name.lower() in given
        case "cookie":
            return "cookie" in given  # one header has them all
        case "query":
            return parameter.name in given_query
        case _:
            return False


def is_json_type(media_type: str) -> bool:
    """Whether content of a type is JSON."""
    plain = media_type.partition(";")[0].strip().lower()
    return plain == "application/json" or plain.endswith("+json")


def is_text_type(media_type: str) -> bool:
    """Whether content of a type is text."""
    plain = media_type.partition(";")[0].strip().lower()
    return family(plain) == "text" or plain in _TEXTS or plain.endswith(("+xml", "+yaml"))


_TEXTS = frozenset(
    {"application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/graphql"}
    | {"application/sql", "application/toml", "application/x-ndjson", "application/jsonl", "application/x-sh"}
)


def is_binary_body(document: Document, body: ApiBody) -> bool:
    """Whether a body is bytes, so that its argument is base64 or the handle of content."""
    kind = body.media_type
    if is_json_type(kind) or is_form(kind):
        return False
    return _is_bytes(document.followed(body.schema)) or (kind in UNINFORMATIVE or not is_text_type(kind))


def is_form(media_type: str) -> bool:
    """Whether a body of a type consists of named parts."""
    return media_type in ("multipart/form-data", "application/x-www-form-urlencoded")


def _body_schema(document: Document, writer: ToolSchema, body: ApiBody) -> tuple[Any, frozenset[str]]:
    if is_binary_body(document, body):
        return _bytes_schema({}, ", ".join(body.media_types)), frozenset()
    if body.media_type != "multipart/form-data":
        return (writer.write(body.schema) if is_json_type(body.media_type) or is_form(body.media_type) else _TEXT), (
            frozenset()
        )
    schema = document.followed(body.schema)
    written = writer.write(schema)
    binary: set[str] = set()
    if not is_object(written):
        return {"type": "object"}, frozenset()
    parts: dict[str, Any] = dict(as_object(written.get("properties")))
    for name, part in as_object(schema.get("properties")).items():
        found = document.followed(part)
        media_type = str(as_object(body.encoding.get(name)).get("contentType", ""))
        if name not in parts:
            continue
        if _is_bytes(found):
            binary.add(name)
            parts[name] = _bytes_schema(found, media_type)
        elif found.get("type") == "array" and _is_bytes(items := document.followed(found.get("items"))):
            binary.add(name)
            parts[name] = {**parts[name], "items": _bytes_schema(items, media_type)}
    return {**written, "properties": parts}, frozenset(binary)


_TEXT: Mapping[str, Any] = {"type": "string"}


def _is_bytes(schema: Mapping[str, Any]) -> bool:
    """Whether a schema describes bytes: `format: binary` in 3.0, a type of content without an encoding in 3.1."""
    if schema.get("format") == "binary":
        return True
    kind = schema.get("contentMediaType")
    return isinstance(kind, str) and "contentEncoding" not in schema and not (is_text_type(kind) or is_json_type(kind))


def _bytes_schema(schema: Mapping[str, Any], media_types: str) -> dict[str, Any]:
    """Return a schema for content, as base64. Of several media types, only one can be named."""
    words = {key: schema[key] for key in ("title", "description") if isinstance(schema.get(key), str)}
    kind = str(schema.get("contentMediaType") or media_types.partition(",")[0]).strip().lower()
    families = {one.strip().partition("/")[0] for one in media_types.split(",")}
    if "," in media_types:
        top = families.pop() if len(families) == 1 else ""
        kind = f"{top}/*" if top in ("image", "audio", "video") else ""
    named = {"contentMediaType": kind} if "/" in kind and kind not in UNINFORMATIVE else {}
    return {"type": "string", "contentEncoding": "base64", **named, **words}


def _described(schema: Any, description: str | None) -> Any:
    if not is_object(schema):
        schema = {} if schema is True else {"not": {}}
    return {**schema, "description": description} if description else schema


def _description(operation: Operation) -> str:
    said = operation.description or operation.summary
    notes = " Deprecated." if operation.is_deprecated else ""
    return f"{said.rstrip()}\n\n{operation.words}{notes}" if said and said.strip() else f"{operation.words}{notes}"


def _annotations(operation: Operation) -> dict[str, Any]:
    """Return the hints that the method gives (RFC 9110, section 9.2)."""
    reads = operation.method in (*READING, "OPTIONS")
    hints: dict[str, Any] = {"readOnlyHint": reads}
    if not reads:
        hints |= {"destructiveHint": True, "idempotentHint": operation.method in _IDEMPOTENT}
    return {**hints, "openWorldHint": True}


def _output_schema(library: SchemaLibrary, operation: Operation) -> dict[str, Any] | None:
    """Return the schema of the answers, if all answers that are not errors are JSON objects of one kind."""
    answers = {code: one for code, one in operation.responses.items() if code.startswith("2")}
    if len(answers) != 1 or operation.method == "HEAD":
        return None
    content = as_object(as_object(next(iter(answers.values()))).get("content"))
    if not content or not all(is_json_type(kind) for kind in content):
        return None
    document, writer = library.document, ToolSchema(library, OUTPUT_BYTES)
    schema = as_object(next(iter(content.values()))).get("schema")
    if not _is_object_schema(document, document.followed(schema)):
        return None
    written = writer.write_inline(schema)
    if not is_object(written):
        return None
    output = {**written, "type": "object"}
    definitions, is_complete = writer.definitions()
    if definitions:
        output["$defs"] = definitions
    return output if is_complete else None


def _is_object_schema(document: Document, schema: Mapping[str, Any]) -> bool:
    waiting, seen = [schema], set[int]()
    while waiting and len(seen) < _MOST_PARTS:
        part = waiting.pop()
        if part.get("type") == "object" or "properties" in part:
            return True
        if id(part) not in seen:  # each is looked at once: with references, their number grows with each level
            seen.add(id(part))
            waiting += [document.followed(inner) for inner in as_list(part.get("allOf"))[:_MOST_PARTS]]
    return False
