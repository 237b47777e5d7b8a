"""Which arguments take content, as schemas and the configuration say it, and what hosts are then shown."""

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from gateway import audio_input, cad_input, file_input, image_input, three_d_input, video_input
from gateway.core.tools.arguments import (
    EVERYTHING,
    FoundParameter,
    Parameter,
    PossibleForms,
    find_parameters,
    parameter_path,
    path_words,
)
from gateway.core.tools.arguments.find_parameters import MOST_NODES

TEXT = {"type": "string"}
ENCODED = {"type": "string", "contentEncoding": "base64"}


@dataclass(frozen=True)
class Said:
    """What the configuration says of an argument."""

    kind: Any = None
    form: Any = None


def defining(definitions: Any) -> dict[str, Any]:
    """The member of a schema that references lead to."""
    return {"$defs": definitions}


def found(properties: dict[str, Any], *, giving: PossibleForms = EVERYTHING, **more: Any) -> FoundParameter:
    settings = more.pop("settings", {})
    meta = {"_meta": more.pop("meta")} if "meta" in more else {}
    schema = {"type": "object", "properties": properties, **more}
    before = copy.deepcopy(schema)
    result = find_parameters({"name": "tool", "inputSchema": schema, **meta}, settings, giving)
    assert schema == before, "what the upstream declared was changed"
    return result


def only(properties: dict[str, Any], **more: Any) -> Parameter:
    (parameter,) = found(properties, **more).parameters
    return parameter


@pytest.mark.parametrize(
    ("schema", "form", "kind", "accepts"),
    [
        (ENCODED, "base64", None, ()),
        ({**ENCODED, "contentMediaType": "image/png"}, "base64", "image", ("image/png",)),
        ({**ENCODED, "contentMediaType": "IMAGE/*"}, "base64", "image", ("image/*",)),
        ({**ENCODED, "contentMediaType": "application/octet-stream"}, "base64", None, ()),
        ({"contentEncoding": "BASE64"}, "base64", None, ()),
        ({**TEXT, "format": "byte"}, "base64", None, ()),
        ({**TEXT, "format": "binary"}, "base64", None, ()),
        ({"type": ["string", "null"], "format": "binary"}, "base64", None, ()),
        ({**TEXT, "format": "data-url"}, "data-uri", None, ()),
        ({**TEXT, "x-blazen-content-ref": {"kind": "audio"}}, "object", "audio", ()),
        ({**TEXT, "x-blazen-content-ref": {"kind": "three_d_model"}}, "object", "3d", ()),
        ({**TEXT, "x-mcp-content-ref": "cad"}, "object", "cad", ()),
        ({**TEXT, "x-mcp-content-ref": {"kind": "archive"}}, "object", None, ()),
        ({**TEXT, "x-mcp-file": {}}, "named-data-uri", None, ()),
        ({**TEXT, "mcpFile": True}, "named-data-uri", None, ()),
        ({**TEXT, "x-mcp-file": {"accept": ["image/*"]}}, "named-data-uri", "image", ("image/*",)),
        ({**TEXT, "x-mcp-file": {"accept": [".pdf"]}}, "named-data-uri", "document", ("application/pdf",)),
        (
            {**TEXT, "x-mcp-file": {"accept": ["image/*", ".pdf"]}},
            "named-data-uri",
            None,
            ("image/*", "application/pdf"),
        ),
        ({**TEXT, "x-mcp-file": {"accept": [".xyz"]}}, "named-data-uri", None, ()),
    ],
)
def test_what_a_schema_says_is_found(schema: dict[str, Any], form: str, kind: str | None, accepts: tuple[str, ...]):
    assert only({"x": schema}) == Parameter(("x",), form, kind, accepts)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "schema",
    [
        TEXT,
        {**TEXT, "format": "uri"},
        {**TEXT, "contentMediaType": "text/html"},
        {**TEXT, "contentEncoding": "quoted-printable"},
        {"type": "integer", "format": "byte"},
        {**TEXT, "x-mcp-file": False},
        {"$ref": "https://example.com/photo.json"},
        {"$ref": "#/$defs/missing"},
        True,
        None,
        "text",
        {"type": {"not": "a name"}, "format": ["binary"]},
        {"anyOf": "x", "properties": [], "items": 3},
    ],
)
def test_everything_else_is_none_and_stays_the_same_object(schema: Any):
    result = found({"x": schema})
    assert result.parameters == ()


def test_a_schema_without_content_is_given_back_as_it_is():
    schema = {"type": "object", "properties": {"a": TEXT}}
    assert find_parameters({"inputSchema": schema}, {}, EVERYTHING).schema is schema
    assert find_parameters({"inputSchema": None}, {}, EVERYTHING).schema is None


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"data": TEXT, "mimeType": TEXT}, ("data", None, "mimeType")),
        ({"image_base64": TEXT, "media_type": TEXT, "question": TEXT}, ("image_base64", "image", "media_type")),
        ({"audioBase64": TEXT, "content_type": TEXT}, ("audioBase64", "audio", "content_type")),
        ({"photo": ENCODED, "mime_type": TEXT}, ("photo", None, "mime_type")),
        ({"data": TEXT, "mimeType": {**TEXT, "enum": ["image/png", "image/jpeg"]}}, ("data", "image", "mimeType")),
        ({"type": {"const": "audio"}, "data": TEXT, "mimeType": TEXT}, ("data", "audio", "mimeType")),
        ({"data": TEXT, "mime": {"anyOf": [TEXT, {"type": "null"}]}}, None),
        ({"data": TEXT, "mime_type": {"anyOf": [TEXT, {"type": "null"}]}}, ("data", None, "mime_type")),
        ({"data": TEXT}, None),
        ({"image_base64": TEXT}, None),
        ({"data": TEXT, "output_mime_type": TEXT}, None),
        ({"content": TEXT, "mimeType": TEXT}, None),
        ({"data": {"type": "object"}, "mimeType": TEXT}, None),
        ({"data": TEXT, "image_base64": TEXT, "mimeType": TEXT}, None),
        ({"data": TEXT, "mimeType": TEXT, "fileMimeType": TEXT}, None),
    ],
)
def test_pairs_of_base64_and_its_media_type_are_found_and_nothing_that_only_looks_so(
    properties: dict[str, Any], expected: tuple[str, str | None, str] | None
):
    parameters = found(properties).parameters
    told = [(path_words(each.path), each.kind, each.beside) for each in parameters]
    assert told == ([expected] if expected else [])


def test_nested_objects_lists_branches_and_references_are_looked_into():
    definitions = {
        "Photo": {"type": "object", "properties": {"data": TEXT, "mimeType": TEXT}, "required": ["data", "mimeType"]},
        "Alias": {"$ref": "#/$defs/Photo"},
    }
    result = found(
        {
            "one": {"$ref": "#/$defs/Alias"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/Photo"}},
            "deep": {"type": "object", "properties": {"a/b": {"type": "array", "items": ENCODED}}},
            "maybe": {"anyOf": [{**TEXT, "format": "binary"}, {"type": "null"}], "description": "A scan."},
            "either": {"oneOf": [{**TEXT, "format": "uri"}, ENCODED]},
            "all": {"allOf": [ENCODED], "title": "All"},
            "other": {"$ref": "#/$defs/Photo/properties/mimeType"},
        },
        **defining(definitions),
    )
    assert [path_words(each.path) for each in result.parameters] == [
        "one.data",
        "list[].data",
        "deep.a/b[]",
        "maybe",
        "either",
        "all",
    ]
    shown = result.schema["properties"]
    assert shown["one"]["required"] == ["data"]
    assert shown["maybe"]["anyOf"] == [TEXT, {"type": "null"}]
    assert shown["maybe"]["description"].startswith("A scan. [Takes a file: its handle")
    assert shown["other"] == {"$ref": "#/$defs/Photo/properties/mimeType"}
    assert result.schema["$defs"] is definitions or result.schema["$defs"] == definitions
    by_path = {path_words(each.path): each for each in result.parameters}
    assert by_path["either"].takes_urls
    assert not by_path["maybe"].takes_urls


def test_a_schema_that_contains_itself_and_one_without_end_are_looked_at_for_a_while():
    tree = {"type": "object", "properties": {"photo": ENCODED, "next": {"$ref": "#/$defs/Tree"}}}
    result = found({"root": {"$ref": "#/$defs/Tree"}}, **defining({"Tree": tree}))
    assert [path_words(each.path) for each in result.parameters] == ["root.photo"]
    assert result.schema["properties"]["root"]["properties"]["next"] == {"$ref": "#/$defs/Tree"}
    doubling = {str(n): {"properties": {side: {"$ref": f"#/$defs/{n + 1}"} for side in "lr"}} for n in range(40)}
    assert found({"x": {"$ref": "#/$defs/0"}}, **defining(doubling)).parameters == ()
    deep: Any = ENCODED
    for number in range(5_000):
        deep = {"anyOf": [deep]} if number % 2 else {"properties": {"x": deep}}
    assert find_parameters({"inputSchema": {"properties": {"x": deep}}}, {}, EVERYTHING).parameters == ()
    many = {f"p{number}": ENCODED for number in range(2 * MOST_NODES)}
    assert len(found(many).parameters) < MOST_NODES


def test_the_configuration_names_arguments_that_their_schemas_do_not():
    items = {"type": "array", "items": {"type": "object", "properties": {"photo": TEXT, "title": TEXT}}}
    settings = {
        "items[].photo": Said("image", "data-uri"),
        "file": Said("audio", "path"),
        "plain": Said(),
        "tagged": Said("any"),
        "many": Said("video"),
        "not.there": Said("image"),
    }
    tagged = {**TEXT, "x-blazen-content-ref": {"kind": "image"}}
    result = found(
        {"items": items, "file": TEXT, "plain": TEXT, "tagged": tagged, "many": {"type": "array", "items": TEXT}},
        settings=settings,
    )
    assert {path_words(each.path): (each.kind, each.form) for each in result.parameters} == {
        "items[].photo": ("image", "data-uri"),
        "file": ("audio", "path"),
        "plain": (None, "base64"),
        "tagged": (None, "object"),
        "many[]": ("video", "base64"),
    }
    assert result.missing == ("not.there",)
    assert result.schema["properties"]["items"]["items"]["properties"]["title"] is TEXT


def test_paths_are_written_with_dots_and_brackets():
    assert parameter_path("a") == ("a",)
    assert parameter_path("items[].photo") == ("items", None, "photo")
    assert parameter_path("grid[][]") == ("grid", None, None)
    assert path_words(("items", 2, "photo")) == "items[2].photo"


def test_files_of_openai_are_found_at_the_top_in_lists_and_left_to_a_host_that_fills_them_in():
    file = {"type": "object", "properties": {"download_url": TEXT, "file_id": TEXT}, "required": ["download_url"]}
    properties = {"file": file, "files": {"type": "array", "items": file}, "other": file}
    meta = {"openai/fileParams": ["file", "files", 3]}
    result = found(properties, meta=meta)
    assert [(path_words(each.path), each.form) for each in result.parameters] == [
        ("file", "openai-file"),
        ("files[]", "openai-file"),
    ]
    assert result.schema["properties"]["file"]["type"] == "string"
    assert "properties" not in result.schema["properties"]["file"]
    assert result.schema["properties"]["other"] is file
    for giving in (PossibleForms(links=True, host_files=True), PossibleForms(links=False)):
        assert found(properties, meta=meta, giving=giving).parameters == ()


def test_what_cannot_be_given_is_not_offered():
    settings = {"path": Said("image", "path"), "url": Said("image", "url")}
    properties = {"path": TEXT, "url": TEXT}
    offered = [
        [path_words(each.path) for each in found(properties, settings=settings, giving=giving).parameters]
        for giving in (
            PossibleForms(),
            PossibleForms(files=True),
            PossibleForms(links=True),
            PossibleForms(handles=False, files=True),
        )
    ]
    assert offered == [[], ["path"], ["url"], []]


def test_a_host_is_told_of_urls_only_where_they_are_possible():
    def description(giving: PossibleForms) -> str:
        schema = found({"x": {**ENCODED, "contentMediaType": "image/png"}}, giving=giving).schema
        return schema["properties"]["x"]["description"]

    assert "its URL" in description(PossibleForms(fetched=True))
    assert "URL" not in description(PossibleForms())
    assert "an image (image/png)" in description(PossibleForms())


def test_what_would_refuse_a_handle_is_left_out_and_all_else_stays():
    schema = {**ENCODED, "format": "byte", "pattern": "^[A-Za-z0-9+/=]+$", "maxLength": 9, "title": "T", "x-mine": [1]}
    shown = found({"x": schema}).schema["properties"]["x"]
    assert shown == {"type": "string", "title": "T", "x-mine": [1], "description": shown["description"]}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (image_input("f", "about it"), "image"),
        (audio_input("f"), "audio"),
        (video_input("f"), "video"),
        (file_input("f"), "document"),
        (three_d_input("f"), "3d"),
        (cad_input("f", others={"scale": {"type": "number"}}), "cad"),
    ],
)
def test_the_schemas_for_people_who_write_tools_are_found_as_what_they_are(schema: dict[str, Any], kind: str):
    assert schema["required"] == ["f"]
    (parameter,) = find_parameters({"inputSchema": schema}, {}, EVERYTHING).parameters
    assert (parameter.path, parameter.kind, parameter.form) == (("f",), kind, "object")


def test_the_schema_of_an_image_is_the_one_of_the_guide():
    assert image_input("photo", "the photo to analyze") == {
        "type": "object",
        "properties": {
            "photo": {
                "type": "string",
                "description": "the photo to analyze",
                "x-blazen-content-ref": {"kind": "image"},
            }
        },
        "required": ["photo"],
    }
