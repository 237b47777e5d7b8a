"""docs/authors.md: its snippets run, and its rules are the ones that are given."""

import io
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from PIL import Image

from gateway.testing import assert_seen
from gateway.testing.advice import RULES

PAGE = (Path(__file__).parents[2] / "docs" / "authors.md").read_text("utf-8")


def png() -> bytes:
    out = io.BytesIO()
    Image.linear_gradient("L").convert("RGB").save(out, "PNG")
    return out.getvalue()


def the_snippets(fence: str) -> dict[str, Any]:
    names: dict[str, Any] = {"week_as_png": png, "assert_seen": assert_seen}
    for snippet in re.findall(rf"```{fence}\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(snippet, "authors.md", "exec"), names)
    return names


def test_the_snippets_do_what_the_page_says() -> None:
    names = the_snippets("python")
    names["test_every_model_sees_the_chart"](png())
    anyio.run(names["test_every_model_sees_the_week"])


def test_a_tool_with_media_has_no_output_schema_and_one_with_numbers_has() -> None:
    tools = {tool.name: tool for tool in anyio.run(the_snippets("python")["server"].list_tools)}
    assert tools["draw_week"].output_schema is None
    assert tools["measure_week"].output_schema is not None


def test_the_snippet_of_fastmcp_does_what_the_page_says() -> None:
    (snippet,) = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    compile(snippet, "authors.md", "exec")
    with suppress(ImportError):  # of the package, only the client may be installed
        anyio.run(the_snippets("py")["test_every_model_sees_the_week"])


def test_a_result_of_fastmcp_has_the_text_and_the_picture() -> None:
    from fastmcp.tools import ToolResult
    from fastmcp.utilities.types import Image as Picture

    result = ToolResult(content=["words", Picture(data=png(), format="png")])
    assert [block.type for block in result.content] == ["text", "image"]
    assert result.structured_content is None
    assert_seen(
        {"content": [block.model_dump(by_alias=True) for block in result.content]}, host="claude-code", images=1
    )


def test_the_page_has_every_rule_in_its_words() -> None:
    assert dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", PAGE.split("## The rules")[1], re.MULTILINE)) == RULES
