"""The policy and the pins in force: which tools exist for a caller, and what is decided about its calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from gateway.config.schema import Settings
from gateway.config.toolset_settings import scopes_of
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.core.model.json_values import as_object
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.model.toolset_scope import ToolsetScope
from gateway.core.model.wire import WireObject
from gateway.core.policy import NOTHING_SAID, Decision, Policy, ToolFacts, hints_of
from gateway.core.tools.catalogue import OWN, Route, WithheldTool
from gateway.errors import NotAllowed
from gateway.routing.ports import PinsPort, UpstreamsPort
from gateway.routing.visible_upstreams import visible

_LONGEST_NAME = 200
_REMEMBERED = 64
"""Maximum number of answers for which it is known whom a change concerns: many hosts have the same token or rules."""
_REMEDY = "tell the user: only the gateway's configuration can allow it"

NOBODY = ""
"""A principal that no rule names."""

Lists = Mapping[str, Sequence[WireObject]]
"""The raw tools of each upstream."""


class CallRules:
    """Decides the same when tools are listed and when they are called. The gateway's own tools are not restricted."""

    def __init__(self, upstreams: UpstreamsPort, settings: Settings, pins: PinsPort | None = None) -> None:
        self._upstreams = upstreams
        self._pins = pins
        self.policy = policy_of(settings)
        self._toolsets = settings.toolsets

    def reconfigure(self, settings: Settings) -> None:
        """Apply changed settings."""
        self.policy = policy_of(settings)
        self._toolsets = settings.toolsets

    def key(self, caller: Caller) -> object:
        """Return what the caller's list depends on besides its grant."""
        return caller.principal if self.policy.names_principals else None

    def narrowed(self, caller: Caller) -> Caller:
        """Return the caller with what its toolsets leave, and without what the policy withholds of whole upstreams.

        Raises:
            UnknownToolset: one of its toolsets does not exist (any more).
        """
        if caller.toolsets:
            within = scopes_of(self._toolsets, caller.toolsets)
            caller = replace(caller, grant=caller.grant._replace(within=within))
        if self.policy.is_empty:
            return caller
        closed = frozenset(name for name in self._upstreams if not self.policy.shares(name, caller.principal))
        return replace(caller, grant=caller.grant._replace(closed=closed)) if closed else caller

    def without_upstreams(self, caller: Caller) -> Caller:
        """Return the caller with a grant that reaches nothing of any upstream."""
        return replace(caller, grant=caller.grant._replace(within=(ToolsetScope(NOBODY),)))

    def look(self, caller: Caller, lists: Lists) -> Callable[[], list[WithheldTool]]:
        """Return a function that finds the tools in these lists that are withheld from the caller.

        It may be called in a thread: it asks the upstreams for nothing.
        """
        pins, policy = self._pins, self.policy
        upstreams = visible(self._upstreams, caller)
        seen = [pins.look(upstreams[name], caller, tools) for name, tools in lists.items()] if pins else []

        def found() -> list[WithheldTool]:
            held = [each for look in seen for each in look()]
            return held if policy.is_empty else [*_denied(policy, caller.principal, lists), *held]

        return found

    def listed(self, name: str) -> None:
        """Pin or compare the tools that an upstream has just listed, whether a host asks for them or not."""
        if self._pins is not None and name in self._upstreams:
            upstream = self._upstreams[name]
            nobody = Caller(revision=NEWEST_HANDSHAKE)
            self._pins.look(upstream, nobody, upstream.lists_for(nobody).tools)()

    def decide(self, route: Route, caller: Caller, arguments: object) -> Decision:
        """Decide about a call.

        Raises:
            NotAllowed: it is denied.
        """
        if self.policy.is_empty or route.upstream == OWN:
            return NOTHING_SAID
        decision = self.policy.for_call(self._facts(route, caller), caller.principal, as_object(arguments))
        if decision.verdict == "deny":
            raise denied(f"{route.upstream}: {plain(route.tool, _LONGEST_NAME)} with these arguments", decision)
        return decision

    def is_listed(self, route: Route, caller: Caller) -> bool:
        """Whether the policy lists a tool."""
        if self.policy.is_empty or route.upstream == OWN:
            return True
        return self.policy.for_list(self._facts(route, caller), caller.principal).verdict != "deny"

    def asks(self, route: Route, caller: Caller) -> str:
        """Return the rule for which calls of a tool wait for the user, at least with some arguments; "" if none."""
        if self.policy.is_empty or route.upstream == OWN:
            return ""
        decision = self.policy.for_list(self._facts(route, caller), caller.principal)
        return decision.rule if decision.verdict == "approve" else ""

    def concerns(self, tools: frozenset[ToolFacts] | None, principal: str, grant: Grant) -> bool:
        """Whether one of these tools exists for a principal with this grant; true if they are not known."""
        if tools is None or (grant.reaches_all_tools and self.policy.is_empty):
            return True
        return _one_exists(self.policy, tools, principal if self.policy.names_principals else NOBODY, grant)

    def _facts(self, route: Route, caller: Caller) -> ToolFacts:
        tools = self._upstreams[route.upstream].lists_for(caller).tools
        declared = [tool for tool in tools if as_object(tool).get("name") == route.tool]
        return ToolFacts(route.upstream, route.tool, hints_of(declared))


@lru_cache(maxsize=_REMEMBERED)
def _one_exists(policy: Policy, tools: frozenset[ToolFacts], principal: str, grant: Grant) -> bool:
    return any(
        grant.reaches_tool(tool.upstream, tool.tool) and policy.for_list(tool, principal).verdict != "deny"
        for tool in tools
    )


def policy_of(settings: Settings) -> Policy:
    """Return the policy that the settings describe."""
    return Policy(
        settings.policy.rules,
        read_only=settings.policy.read_only,
        read_only_upstreams=[name for name, upstream in settings.upstreams.items() if upstream.read_only],
    )


def denied(what: str, decision: Decision) -> NotAllowed:
    """Return the error for something that a rule denies."""
    return NotAllowed(f"{what} is {_why(decision)}", rule=decision.rule, remedy=_REMEDY)


def refusal(name: str, withheld: WithheldTool) -> NotAllowed:
    """Return the error for a call of a tool that is withheld."""
    remedy = _REMEDY if withheld.rule else None
    return NotAllowed(f"{plain(name, _LONGEST_NAME)} is withheld: {withheld.why}", rule=withheld.rule, remedy=remedy)


def _denied(policy: Policy, principal: str, lists: Lists) -> list[WithheldTool]:
    found: list[WithheldTool] = []
    for upstream, tools in lists.items():
        declared: dict[str, list[WireObject]] = {}
        for tool in tools:
            declared.setdefault(str(as_object(tool).get("name")), []).append(tool)
        for name, same in declared.items():
            decision = policy.for_list(ToolFacts(upstream, name, hints_of(same)), principal)
            if decision.verdict == "deny":
                found.append(WithheldTool(upstream, name, decision.rule, _why(decision)))
    return found


def _why(decision: Decision) -> str:
    because = f": {plain(decision.reason)}" if decision.reason else ""
    return f"not allowed by the rule {decision.rule!r} of the gateway{because}"
