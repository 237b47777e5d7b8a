"""Rules that can never decide anything, because an earlier one matches whatever they match. Pure.

Only what holds for every tool that there could be is found. A rule whose calls are covered by several earlier ones
together is not.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from gateway.core.model.grant import SEPARATOR
from gateway.core.policy.decide import PolicyRule

_HINTS: Sequence[tuple[str, Callable[[PolicyRule], bool | None]]] = (
    ("read_only", lambda rule: rule.read_only),
    ("destructive", lambda rule: rule.destructive),
    ("idempotent", lambda rule: rule.idempotent),
    ("open_world", lambda rule: rule.open_world),
)
_SPECIAL = re.compile(r"[*?\[]")
_OTHER_THAN_STARS = re.compile(r"[?\[]")


class ShadowedRule(NamedTuple):
    """A rule that never applies: its place and name, and why, in words."""

    place: int
    name: str
    why: str


def shadowed_rules(rules: Sequence[PolicyRule], *, read_only: bool = False) -> Iterator[ShadowedRule]:
    """Return the rules that never apply; `read_only` is `[policy] read_only`, which comes before all of them."""
    for place, rule in enumerate(rules):
        hints = _hints_of(rule)
        earlier = next((each for each in rules[:place] if _covers(each, rule)), None)
        if hints is None:
            yield ShadowedRule(place, rule.name, "no tool is both read-only and destructive")
        elif earlier is not None:
            yield ShadowedRule(place, rule.name, f"the earlier rule {earlier.name!r} matches whatever it matches")
        elif read_only and hints.get("read_only") is False:
            yield ShadowedRule(place, rule.name, "policy.read_only withholds such tools before any rule is asked")


def _covers(earlier: PolicyRule, later: PolicyRule) -> bool:
    """Whether the earlier rule matches every call, and every upstream, that the later one matches."""
    wanted, hints = _hints_of(earlier), _hints_of(later)
    if earlier.arguments is not None or wanted is None or hints is None:
        return False
    # Rules about whole upstreams also decide about resources and prompts, as other rules do not.
    if _is_about_upstreams(later) and not _is_about_upstreams(earlier):
        return False
    return (
        all(hints.get(name) is value for name, value in wanted.items())
        and _all_within(_upstreams_of(later), earlier.upstreams)
        and _all_within(_tools_of(later), earlier.tools)
        and _all_within(later.principals, earlier.principals)
    )


def _is_about_upstreams(rule: PolicyRule) -> bool:
    return rule.tools is None and rule.arguments is None and not _hints_of(rule)


def _hints_of(rule: PolicyRule) -> dict[str, bool] | None:
    """Return the hints that the rule asks for, and those that follow from them; None if they contradict each other."""
    wanted = {name: value for name, hint in _HINTS if (value := hint(rule)) is not None}
    if wanted.get("read_only") and wanted.get("destructive"):
        return None
    if wanted.get("destructive"):
        wanted["read_only"] = False
    if wanted.get("read_only"):
        wanted["destructive"] = False
    return wanted


def _upstreams_of(rule: PolicyRule) -> Sequence[str] | None:
    """Return the upstreams' globs, or else the upstreams that all of the tools' globs name."""
    if rule.upstreams is not None or rule.tools is None:
        return rule.upstreams
    named = [tool.partition(SEPARATOR) for tool in rule.tools]
    if any(_SPECIAL.search(upstream) or not separator for upstream, separator, _ in named):
        return None
    return [upstream for upstream, _, _ in named]


def _tools_of(rule: PolicyRule) -> Sequence[str] | None:
    """Return the tools' globs, or else those that match all tools of the upstreams."""
    if rule.tools is not None or rule.upstreams is None:
        return rule.tools
    return [f"{upstream}{SEPARATOR}*" for upstream in rule.upstreams]


def _all_within(globs: Sequence[str] | None, others: Sequence[str] | None) -> bool:
    """Whether all that one of `globs` matches is matched by one of `others` too; None matches all."""
    if others is None:
        return True
    return all(any(_within(glob, other) for other in others) for glob in (["*"] if globs is None else globs))


def _within(glob: str, other: str) -> bool:
    if glob == other:
        return True
    # A star takes in whatever another glob has in its place; `?` and `[...]` only do so for plain characters.
    is_plain = _SPECIAL.search(glob) is None
    return (is_plain or _OTHER_THAN_STARS.search(other) is None) and fnmatchcase(glob, other)
