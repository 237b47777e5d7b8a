"""What an upstream of the revision after the newest is asked for, and its tools and results as all others have them.

See `core.results.output_variants`. Only what a result was asked for is taken from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.fact_words import plain
from gateway.core.model.apps_extension import declares
from gateway.core.model.json_values import is_list
from gateway.core.model.wire import WireObject
from gateway.core.results.output_variants import (
    FALLBACK,
    OUTPUTS,
    REQUESTED,
    VARIANTS,
    Selector,
    as_earlier_result,
    as_earlier_tool,
    asked_of_upstream,
    selectors_of,
)
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.transports.causes import NotMcp


class ResultForms:
    """The forms that the tools of one upstream can give, as it last listed them."""

    def __init__(self) -> None:
        self._declared: dict[str, tuple[Selector, ...]] = {}

    def listed(self, tools: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
        """Remember what the tools declare, and return them with the schema that all others have.

        Raises:
            NotMcp: a tool declares nothing, which this revision does not allow.
        """
        for tool in tools:
            if not is_list(tool.get(VARIANTS)):
                name = plain(str(tool.get("name")), 100)
                raise NotMcp(f"listed the tool {name!r} without the forms of its results ({VARIANTS})")
        self._declared = {str(tool.get("name")): selectors_of(tool) for tool in tools}
        return tuple(dict(as_earlier_tool(tool)) for tool in tools)

    def asking(
        self, params: Mapping[str, Any], chosen: Sequence[Any] | None, identity: ClientIdentity
    ) -> Mapping[str, Any]:
        """Return the params of a call with the forms to ask for. `chosen` are those of the host, if it chooses."""
        declared = self._declared.get(str(params.get("name")), ())
        pages = declares(identity.capabilities)
        given = None if chosen is None else list(chosen)
        asked = asked_of_upstream(declared, given, shows_pages=pages)
        return params if asked is None else {**params, REQUESTED: asked}

    def given(self, params: Mapping[str, Any], result: WireObject) -> dict[str, Any]:
        """Return the result of a call with these params as all others have it, beside its outputs.

        Raises:
            NotMcp: it has none.
        """
        if result.get("resultType", "complete") != "complete":
            return dict(result)
        if not is_list(result.get(OUTPUTS)):
            raise NotMcp(f"answered tools/call without {OUTPUTS}")
        return as_earlier_result(result, params.get(REQUESTED) or [FALLBACK.wire()])
