"""Arguments of a call: replace handles with content, and say in a tool's error what may be wrong with them."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_list, as_object
from gateway.core.model.wire import text_result
from gateway.core.tools.arguments import unknown_arguments
from gateway.core.tools.catalogue import Route
from gateway.core.wording import failure_text, unknown_argument, unmarked_handle
from gateway.errors import ArgumentError
from gateway.routing.around_upstream import AroundUpstream
from gateway.routing.ports import ArgumentsPort
from gateway.upstream.bridging.bridge import BridgedUpstream
from gateway.upstream.connection.deadlines import CallLimits
from gateway.upstream.connection.request_context import RequestContext

logger = logging.getLogger(__name__)

_LONGEST = 1_000


def _nobody_listens(_: str) -> None:
    """Do nothing."""


class WithContent(AroundUpstream):
    """Wraps an upstream for the calls of one tool.

    It is below retries and suspension, so handles are resolved each time that the upstream is asked, files exist
    exactly as long as the upstream's call runs, and nothing else holds the content. `on_refusal` is called with the
    reason why the upstream is not asked.
    """

    def __init__(
        self,
        upstream: BridgedUpstream,
        route: Route,
        arguments: "ArgumentsPort",
        on_refusal: Callable[[str], object] = _nobody_listens,
    ) -> None:
        super().__init__(upstream)
        self._route = route
        self._arguments = arguments
        self._on_refusal = on_refusal

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext,
        timeout: CallLimits | None = None,
    ) -> dict[str, Any]:
        """Return the upstream's raw result, or an error result of our own if an argument's content cannot be given."""
        arguments = as_object(params.get("arguments"))
        owner = context.caller.principal
        try:
            async with self._arguments.resolved(
                arguments, self._route.parameters, owner=owner, upstream=self.name, settings=self.settings
            ) as resolved:
                passed = params if resolved is arguments else {**params, "arguments": resolved}
                return await self._upstream.request(method, passed, context, timeout)
        except ArgumentError as error:
            self._on_refusal(error.message)
            return _refused(self._route, error)


def naming_unknown(raw: dict[str, Any], route: Route, schema: object, arguments: object) -> dict[str, Any]:
    """Return a tool's error with a line for each argument that its schema does not have, where a similar one is there.

    The tool may well take an argument that its schema is silent of, so nothing is said of a call that worked.
    """
    lines = [
        {"type": "text", "text": unknown_argument(plain(name, 100), plain(route.tool, 100), plain(question, 400))}
        for name, question in unknown_arguments(as_object(schema), as_object(arguments))
        if question is not None
    ]
    return {**raw, "content": [*as_list(raw.get("content")), *lines]} if lines else raw


async def naming_unmarked(
    raw: dict[str, Any], route: Route, arguments: object, port: "ArgumentsPort", owner: str
) -> dict[str, Any]:
    """Return a tool's error with a line for each handle that it was given as text, where its schema marks no content.

    `owner` is the caller: handles of others do not exist.
    """
    unmarked = await port.unmarked(arguments, route.parameters, owner=owner)
    if not unmarked:
        return raw
    tool = plain(route.tool, 100)
    for where, _ in unmarked:
        logger.debug("%s of %s is a handle, and not marked as content (docs/arguments.md)", plain(where, 200), tool)
    lines = [{"type": "text", "text": unmarked_handle(plain(where, 200), handle, tool)} for where, handle in unmarked]
    return {**raw, "content": [*as_list(raw.get("content")), *lines]}


def _refused(route: Route, error: ArgumentError) -> dict[str, Any]:
    remedy = error.remedy[:1].upper() + error.remedy[1:] if error.remedy else None
    words = f"{plain(route.tool, 100)} was not called: {plain(error.message, _LONGEST)}"
    return text_result(failure_text(words, remedy), is_error=True)
