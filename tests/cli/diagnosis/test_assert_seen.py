"""`assert_seen`, as authors of servers use it in their tests."""

import base64
import io

import mcp_types as types
import pytest
from PIL import Image

from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.testing import HOSTS, assert_seen


def png():
    out = io.BytesIO()
    Image.linear_gradient("L").resize((40, 30)).convert("RGB").save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


TEXT = {"type": "text", "text": "A gradient."}
IMAGE = {"type": "image", "data": png(), "mimeType": "image/png"}
GOOD = {"content": [TEXT, IMAGE]}
HIDDEN = {"content": [TEXT, IMAGE], "structuredContent": {"steps": 30}}
SHOWING = [name for name, host in SIMULATORS.items() if host.shows_images]


def explained(result, **more):
    with pytest.raises(AssertionError) as raised:
        assert_seen(result, **more)
    return str(raised.value)


@pytest.mark.parametrize("host", SHOWING)
def test_a_good_result_is_seen_by_every_host_that_shows_images(host):
    assert_seen(GOOD, host=host, images=1)
    assert_seen(GOOD, host=host)


def test_what_is_lost_is_explained_with_what_the_model_gets_and_what_to_change():
    said = explained(HIDDEN, host="codex")
    assert said.startswith("the model of Codex does not see all of it (0 of 1 image):\n  - not seen: image/png")
    assert (
        'it gets:\n  frame, 33 characters: Wall time: 0.1000 seconds Output:\n  structured, 12 characters: {"steps":30}'
        in said
    )
    assert "to change:\n  - structuredContent: beside images it hides them" in said
    assert said.endswith("through_gateway=True: what it would get through the gateway")


@pytest.mark.parametrize("host", HOSTS)
def test_through_the_gateway_it_is_seen_or_named_everywhere(host):
    assert_seen(HIDDEN, host=host, through_gateway=True)


def test_base64_as_text_is_a_failure_although_the_image_is_seen():
    assert "characters of base64 as text" in explained(
        {"content": [IMAGE, {"type": "text", "text": f"data:image/png;base64,{IMAGE['data']}"}]}, host="unknown"
    )


def test_the_number_of_images_is_what_the_model_sees():
    assert "2 images were expected, and the model sees 1" in explained(GOOD, host="codex", images=2)
    assert "1 image was expected, and the model sees 0" in explained(GOOD, host="cline", images=1, through_gateway=True)
    assert_seen({"content": [TEXT]}, host="codex", images=0)


def test_objects_of_the_sdk_are_taken_as_they_stand_on_the_wire():
    image = types.ImageContent(type="image", data=IMAGE["data"], mime_type="image/png")
    text = types.TextContent(type="text", text="A gradient.")
    assert_seen(types.CallToolResult(content=[text, image]), host="codex", images=1)
    said = explained(types.CallToolResult(content=[text, image], structured_content={"a": 1}), host="codex")
    assert '{"a":1}' in said
    tool = types.Tool(name="a", input_schema={"type": "object"}, output_schema={"type": "object"})
    assert "output schema" in explained(types.CallToolResult(content=[text]), host="claude-code", tool=tool)
    assert_seen(types.CallToolResult(content=[text]), host="claude-code", tool=tool, through_gateway=True)


def test_a_response_is_taken_as_well_as_a_result():
    assert_seen({"jsonrpc": "2.0", "id": 1, "result": GOOD}, host="gemini-cli", images=1)


@pytest.mark.anyio
async def test_it_works_inside_of_an_event_loop():
    assert_seen(HIDDEN, host="codex", images=1, through_gateway=True)


def test_a_person_is_spoken_of_as_one():
    assert explained({"content": [{"type": "video"}]}, host="inspector").startswith("a person at MCP Inspector")


def test_nothing_at_all_is_said_to_be_nothing():
    assert "it gets:\n  nothing" in explained(
        {"content": [], "structuredContent": {"a": 1}}, host="unknown", through_gateway=False
    )


def test_strange_arguments_are_refused():
    with pytest.raises(ValueError, match="no simulated host is called 'codx'; did you mean 'codex'"):
        assert_seen(GOOD, host="codx")
    with pytest.raises(ValueError, match=r"vscode-copilot has a profile, but no simulator .* --profile vscode-copilot"):
        assert_seen(GOOD, host="vscode-copilot")
    with pytest.raises(TypeError, match="not str"):
        assert_seen("GOOD", host="codex")
    with pytest.raises(TypeError, match="tool has to be"):
        assert_seen(GOOD, host="codex", tool=5)


def test_only_what_would_change_something_at_this_host_is_advised():
    data = {"content": [IMAGE], "structuredContent": {"steps": 30}}
    said = explained(HIDDEN, host="cline", images=1, through_gateway=True)
    assert "1 image was expected, and the model sees 0; Cline shows its model no images" in said
    assert "to change" not in said
    said = explained(HIDDEN, host="codex", images=2, through_gateway=True)
    assert "2 images were expected, and the model sees 1; the result has 1" in said
    assert "to change" not in said
    assert "leave it out of results with images" in explained(data, host="codex", images=1)
    assert "; the result has none" in explained({"content": [TEXT]}, host="codex", images=1)


def test_a_block_that_costs_a_host_something_is_advised_on_at_its_place():
    said = explained({"content": [TEXT, {"type": "image", "data": "data:x", "mimeType": "image/png"}]}, host="cline")
    assert "content[1]: its data is not base64" in said
