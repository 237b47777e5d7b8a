"""Which tools a changed list is about: those that are others now, as they were and as they are."""

from typing import Any

import pytest

from gateway.core.model.tool_facts import Hints, ToolFacts
from gateway.core.policy.changed_tools import changed_tools

READS = Hints(read_only=True, destructive=False)


def tool(name: Any, *, reads: bool = False, **more: Any) -> Any:
    return {"name": name, **({"annotations": {"readOnlyHint": True}} if reads else {}), **more}


def facts(*given: tuple[str, Hints]) -> frozenset[ToolFacts]:
    return frozenset(ToolFacts("docs", name, hints) for name, hints in given)


A, B = tool("a"), tool("b", reads=True)


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ([A], [A, B], facts(("b", READS))),
        ([A, B], [A], facts(("b", READS))),
        ([A, B], [A, tool("b")], facts(("b", READS), ("b", Hints()))),  # as it was, and as it is
        ([A, B], [tool("a", description="another"), B], facts(("a", Hints()))),
        ([A, B], [A, B], facts(("a", Hints()), ("b", READS))),  # only said to have changed
        ([A, B], [B, A], facts(("a", Hints()), ("b", READS))),
        ([A], [A, tool("a", reads=True)], facts(("a", Hints()))),  # a second one of that name: the stricter counts
        ([A], [], facts(("a", Hints()))),
        ([], [], None),
    ],
)
def test_the_tools_that_differ(before: Any, now: Any, changed: frozenset[ToolFacts] | None) -> None:
    assert changed_tools("docs", before, now) == changed


@pytest.mark.parametrize("odd", [tool(["x"]), tool(None), {}, "no tool", None, 7])
def test_what_is_no_tool_hides_none_that_is(odd: Any) -> None:
    found = changed_tools("docs", [A], [A, odd, B])
    assert found is not None
    assert ToolFacts("docs", "b", READS) in found
    assert ToolFacts("docs", "a") not in found
