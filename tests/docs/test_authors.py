"""docs/authors.md: its snippets run, and its rules are the ones that are given."""

import io
import re
from pathlib import Path

from PIL import Image

from gateway.testing.advice import RULES

PAGE = (Path(__file__).parents[2] / "docs" / "authors.md").read_text("utf-8")


def test_the_snippets_do_what_the_page_says() -> None:
    out = io.BytesIO()
    Image.linear_gradient("L").convert("RGB").save(out, "PNG")
    names: dict[str, object] = {}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(snippet, "authors.md", "exec"), names)
    test = names["test_every_model_sees_the_chart"]
    assert callable(test)
    test(out.getvalue())


def test_the_page_has_every_rule_in_its_words() -> None:
    assert dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", PAGE.split("## The rules")[1], re.MULTILINE)) == RULES
