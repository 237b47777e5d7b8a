"""The tables `[policy]` and `[pins]`: what may be called, what needs an approval, and what happens to changed tools."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from gateway.config.section import Section
from gateway.core.model.quantities import Duration

RULE_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}"

PinMode = Literal["off", "warn", "hold"]

Globs = tuple[str, ...] | None

_HINTS = ("read_only", "destructive", "idempotent", "open_world")


class RuleSettings(Section):
    """A rule. It matches a call if everything that it says does, and the first rule that matches decides.

    Without a rule that matches, the call is allowed. A rule that says nothing of tools, hints and arguments is about
    whole upstreams: with `deny`, their resources and prompts are withheld too.
    """

    name: str
    """The name that errors, logs and the audit give it."""
    effect: Literal["allow", "deny", "approve"]
    """`approve`: the user is asked before each call."""
    upstreams: Globs = None
    """Upstreams; shell globs. Omitted: all."""
    tools: Globs = None
    """Tools: shell globs on `upstream__tool`, whatever name the tool is offered under. Omitted: all."""
    principals: Globs = None
    """Principals; shell globs. Omitted: all."""
    read_only: bool | None = None
    """Tools that declare that they change nothing (`true`), or that do not declare it (`false`)."""
    destructive: bool | None = None
    """Tools that may destroy something: all that do not declare the opposite."""
    idempotent: bool | None = None
    """Tools that declare that repeating a call changes nothing more."""
    open_world: bool | None = None
    """Tools that may reach the outside world: all that do not declare the opposite."""
    arguments: dict[str, Any] | None = None
    """A JSON schema that the arguments fit, such as `{ required = ["force"] }`; for calls, not for the list."""
    reason: Annotated[str, Field(max_length=500)] | None = None
    """The reason, for the model and for the user who is asked."""

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if re.fullmatch(RULE_NAME, name) is None:
            raise ValueError("is not a name for a rule: letters, digits, _ and -, 60 at most")
        return name

    @field_validator("upstreams", "tools", "principals")
    @classmethod
    def _names_something(cls, globs: Globs) -> Globs:
        if globs == ():
            raise ValueError("is empty, so the rule would never match: leave it out to match all")
        return globs

    @field_validator("arguments")
    @classmethod
    def _can_be_checked(cls, arguments: dict[str, Any] | None) -> dict[str, Any] | None:
        if arguments is not None:
            from gateway.core.policy.arguments import ArgumentCondition  # a validator that few configurations need

            ArgumentCondition(arguments)
        return arguments

    @model_validator(mode="after")
    def _hints_never_permit(self) -> "RuleSettings":
        said = [hint for hint in _HINTS if getattr(self, hint) is not None]
        if self.effect == "allow" and said:
            words = (
                f"{said[0]} is what a server claims of itself, which must not permit anything: name the tools instead"
            )
            raise ValueError(words)
        return self


class PolicySettings(Section):
    """Which tools may be called by whom, and with the approval of the user: docs/policy.md."""

    read_only: bool = False
    """Whether only tools that declare `readOnlyHint` are offered, of all upstreams."""
    approval: Literal["ask", "terminal", "two-step"] = "ask"
    """How the user approves a call: `ask`: in the host if it can ask its user, or else as with `terminal`; `terminal`:
    with `mcp-gateway approvals`; `two-step`: as `ask`, but hosts that cannot ask get a tool `gateway_approve`.
    """
    approval_lasts: Annotated[Duration, Field(ge=10, le=86_400)] = 600.0
    """Seconds for which a call waits for its approval, and an approval for its call."""
    rules: tuple[RuleSettings, ...] = ()
    """The rules, in order: the first that matches decides."""

    @field_validator("rules")
    @classmethod
    def _names_are_unique(cls, rules: tuple[RuleSettings, ...]) -> tuple[RuleSettings, ...]:
        names = [rule.name for rule in rules]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two rules have the name {twice!r}")
        return rules


class PinSettings(Section):
    """Tools of upstreams are pinned as they are when the upstream is first used: docs/policy.md."""

    mode: PinMode = "off"
    """`warn`: report tools that have changed since; `hold`: withhold them, and new ones, until they are approved."""
