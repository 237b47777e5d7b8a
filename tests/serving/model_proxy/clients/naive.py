"""What code makes of a tool's result that takes it for text, or for whatever it has heard of."""

import json


def wire(result):
    """The result's content as MCP writes it."""
    return [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


def images(result):
    return [block for block in result.content if block.type == "image"]


def uris(result):
    return [f"data:{block.mime_type};base64,{block.data}" for block in images(result)]


def content_as_json(result):
    return json.dumps(wire(result))


def result_as_json(result):
    return result.model_dump_json(by_alias=True)


def printed(result):
    return str(result.content)


def markdown(result):
    return "\n".join([text(result), *(f"![]({uri})" for uri in uris(result))])


def image_url_parts(result):
    parts = [{"type": "image_url", "image_url": {"url": uri}} for uri in uris(result)]
    return [{"type": "text", "text": text(result)}, *parts]


FORMS = {
    "MCP's blocks": wire,
    "content as JSON": content_as_json,
    "CallToolResult as JSON": result_as_json,
    "str(content)": printed,
    "data URI in Markdown": markdown,
    "image_url parts": image_url_parts,
}
