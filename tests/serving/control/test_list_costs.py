"""What an upstream's list of tools costs a model, as status reports it."""

from gateway.serving.control.list_costs import list_cost

TOOL = {"name": "find", "description": "Finds things by their name.", "inputSchema": {"type": "object"}}


def test_a_list_is_counted_again_only_when_it_is_another() -> None:
    listed = [TOOL]
    once = list_cost("a", listed)
    assert once > 10
    listed.append(TOOL)  # an upstream never changes a list, so this would not be seen
    assert list_cost("a", listed) == once
    assert list_cost("a", [TOOL, TOOL]) == 2 * once
    assert list_cost("b", []) == 0


def test_tools_that_no_host_is_offered_cost_nothing() -> None:
    assert list_cost("c", [TOOL, {**TOOL, "inputSchema": "none"}]) == list_cost("d", [TOOL])
