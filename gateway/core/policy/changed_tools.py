"""Which tools a changed list concerns: so that those who reach none of them are not told of the change."""

from collections.abc import Iterable, Sequence

from gateway.core.model.json_values import as_object
from gateway.core.model.tool_facts import ToolFacts
from gateway.core.model.wire import WireObject
from gateway.core.policy.hints import hints_of

_Declared = dict[str, list[WireObject]]


def changed_tools(
    upstream: str, before: Sequence[WireObject], now: Sequence[WireObject]
) -> frozenset[ToolFacts] | None:
    """Return the tools of an upstream that came, went or became others, each as it was and as it is.

    These are all of its tools if each is as before: then their order has changed, or the upstream says that something
    has. None if it neither has any nor had any: nobody can tell whom that concerns.
    """
    were, are = _by_name(before), _by_name(now)
    names = [name for name in {**were, **are} if were.get(name) != are.get(name)] or [*are]
    return frozenset(_facts(upstream, names, were)) | frozenset(_facts(upstream, names, are)) or None


def _by_name(tools: Iterable[WireObject]) -> _Declared:
    found: _Declared = {}
    for tool in tools:
        found.setdefault(str(as_object(tool).get("name")), []).append(tool)
    return found


def _facts(upstream: str, names: Iterable[str], declared: _Declared) -> Iterable[ToolFacts]:
    return (ToolFacts(upstream, name, hints_of(declared[name])) for name in names if name in declared)
