"""The names wanted for an upstream's tool or prompt: its own, or with the upstream's name in front."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from gateway.core.model.grant import SEPARATOR
from gateway.core.tools.catalogue.names import NameRules

PrefixRule: TypeAlias = Literal["always", "when-needed", "never"]
"""When the upstream's name is put in front.

`when-needed`: for each name that another upstream has too; `never`: the first upstream keeps a name, and later ones get
the prefix.
"""

OWN = "gateway"
"""The upstream that is the gateway itself. Its tools come first, keep their names, and need no prefix."""


class Named(Protocol):
    """Something named by an upstream. `key` is its name there, `name` the same or the one it was renamed to."""

    @property
    def upstream(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...


def tool_identity(named: Named) -> str:
    """Return what identifies it, whatever it is called."""
    return f"{named.upstream}{SEPARATOR}{named.key}"


@dataclass(frozen=True)
class Prefixing:
    """The rule in force, and the names that more than one upstream would have without a prefix."""

    rule: PrefixRule
    rules: NameRules
    shared: frozenset[str]

    @classmethod
    def of(cls, rule: PrefixRule, rules: NameRules, all_named: Iterable[Named]) -> "Prefixing":
        """Create the rule for everything that is to be named."""
        owners: dict[str, set[str]] = {}
        for each in all_named if rule == "when-needed" else ():
            owners.setdefault(rules.fitted(each.name, tool_identity(each)), set()).add(each.upstream)
        return cls(rule, rules, frozenset(name for name, upstreams in owners.items() if len(upstreams) > 1))

    def wanted(self, named: Named) -> tuple[str, ...]:
        """Return the possible names, best first."""
        prefixed = f"{named.upstream}{SEPARATOR}{named.name}"
        if named.upstream == OWN:
            return (named.name,)
        if self.rule == "always" or self.rules.fitted(named.name, tool_identity(named)) in self.shared:
            return (prefixed,)
        return (named.name, prefixed)
