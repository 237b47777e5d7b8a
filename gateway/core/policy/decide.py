"""The decision about a tool or a call: the first rule that matches decides, and without one it is allowed.

The same rules decide what is listed and what is called. A rule with a condition on arguments decides about calls only:
a tool is left out of the list if it would be denied whatever its arguments.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol

from gateway.core.model.grant import SEPARATOR
from gateway.core.model.tool_facts import ToolFacts
from gateway.core.policy.arguments import ArgumentCondition

Effect = Literal["allow", "deny", "approve"]


class PolicyRule(Protocol):
    """A rule, such as `gateway.config.policy_settings.RuleSettings`. It matches if all that it says does.

    `upstreams`, `tools` (`upstream__tool`) and `principals` are shell globs; None for any. The hints are compared with
    those of the tool, and `arguments` is a JSON schema.
    """

    @property
    def name(self) -> str: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def upstreams(self) -> Sequence[str] | None: ...
    @property
    def tools(self) -> Sequence[str] | None: ...
    @property
    def principals(self) -> Sequence[str] | None: ...
    @property
    def read_only(self) -> bool | None: ...
    @property
    def destructive(self) -> bool | None: ...
    @property
    def idempotent(self) -> bool | None: ...
    @property
    def open_world(self) -> bool | None: ...
    @property
    def arguments(self) -> Mapping[str, Any] | None: ...
    @property
    def reason(self) -> str | None: ...


@dataclass(frozen=True)
class Decision:
    """A verdict, the name of the rule that made it ("" if none matched), and the reason that the rule gives."""

    verdict: Effect = "allow"
    rule: str = ""
    reason: str = ""


NOTHING_SAID = Decision()
"""The decision if no rule matches."""


class Policy:
    """The rules in force. `read_only` is for all upstreams, `read_only_upstreams` for some of them.

    Raises:
        ValueError: the arguments of a rule are not a schema that can be checked.
    """

    def __init__(
        self,
        rules: Iterable[PolicyRule] = (),
        *,
        read_only: bool = False,
        read_only_upstreams: Iterable[str] = (),
    ) -> None:
        self._rules = tuple(_Rule(rule) for rule in rules)
        self._read_only = read_only
        self._read_only_upstreams = frozenset(read_only_upstreams)

    @property
    def is_empty(self) -> bool:
        """Whether everything is allowed."""
        return not (self._rules or self._read_only or self._read_only_upstreams)

    @property
    def names_principals(self) -> bool:
        """Whether principals may be offered different tools."""
        return any(rule.source.principals is not None for rule in self._rules)

    @property
    def asks(self) -> bool:
        """Whether any call may need an approval."""
        return any(rule.source.effect == "approve" for rule in self._rules)

    def for_call(self, tool: ToolFacts, principal: str, arguments: Mapping[str, Any]) -> Decision:
        """Decide about a call."""
        if (refused := self._writes(tool)) is not None:
            return refused
        return next((rule.decision for rule in self._about(tool, principal) if rule.applies(arguments)), NOTHING_SAID)

    def for_list(self, tool: ToolFacts, principal: str) -> Decision:
        """Decide whether to list a tool: `deny` only if every call of it would be denied."""
        if (refused := self._writes(tool)) is not None:
            return refused
        deciding = (
            rule for rule in self._about(tool, principal) if rule.condition is None or rule.source.effect != "deny"
        )
        return next((rule.decision for rule in deciding), NOTHING_SAID)

    def shares(self, upstream: str, principal: str) -> bool:
        """Whether resources, prompts and completions of an upstream exist for a principal.

        Only rules about whole upstreams decide this: those that say nothing of tools, hints or arguments.
        """
        rules = (rule for rule in self._rules if rule.is_about_upstreams and rule.matches_place(upstream, principal))
        return next((rule.source.effect != "deny" for rule in rules), True)

    def _about(self, tool: ToolFacts, principal: str) -> Iterator["_Rule"]:
        return (rule for rule in self._rules if rule.matches(tool, principal))

    def _writes(self, tool: ToolFacts) -> Decision | None:
        """Return the refusal if the tool may change something where nothing may be changed."""
        if tool.hints.read_only or not (self._read_only or tool.upstream in self._read_only_upstreams):
            return None
        where = "policy" if self._read_only else f"upstreams.{tool.upstream}"
        return Decision("deny", f"{where}.read_only", "only tools that declare readOnlyHint are offered")


UNRESTRICTED = Policy()
"""The policy without rules."""


class _Rule:
    def __init__(self, source: PolicyRule) -> None:
        self.source = source
        self.decision = Decision(source.effect, source.name, source.reason or "")
        self.condition = None if source.arguments is None else ArgumentCondition(source.arguments)
        wanted = (source.read_only, source.destructive, source.idempotent, source.open_world)
        self._hints = tuple((place, value) for place, value in enumerate(wanted) if value is not None)

    @property
    def is_about_upstreams(self) -> bool:
        return self.source.tools is None and self.condition is None and not self._hints

    def matches_place(self, upstream: str, principal: str) -> bool:
        return _any(self.source.upstreams, upstream) and _any(self.source.principals, principal)

    def matches(self, tool: ToolFacts, principal: str) -> bool:
        return (
            self.matches_place(tool.upstream, principal)
            and _any(self.source.tools, f"{tool.upstream}{SEPARATOR}{tool.tool}")
            and all(tool.hints[place] is value for place, value in self._hints)
        )

    def applies(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the condition on arguments holds. If that cannot be found out, the stricter outcome counts."""
        if self.condition is None:
            return True
        holds = self.condition.holds(arguments)
        return self.source.effect != "allow" if holds is None else holds


def _any(patterns: Sequence[str] | None, name: str) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)
