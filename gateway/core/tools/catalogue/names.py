"""Names of tools and prompts for a host: legal, within its budget, each given once, and stable.

A name depends only on its own upstream and tool, unless another tool wants the same one; then the earlier upstream of
the configuration keeps it. MCP itself allows 1 to 128 characters of `A-Za-z0-9_.-` (specification, server/tools, "Tool
Names"); what a host adds and rejects is in its profile.
"""

import hashlib
import re
from dataclasses import dataclass, field

from gateway.core.profiles.profile import ToolRules

SMALLEST_BUDGET = 16
"""Characters that a name may always have, however long the host's own prefix is."""

_REPLACEMENT = "_"
_HASH = 8


@dataclass(frozen=True)
class NameRules:
    """A host's rules for names: at most `budget` characters, none `illegal`. `_` and hex digits must be legal."""

    budget: int
    illegal: re.Pattern[str]

    @classmethod
    def of(cls, rules: ToolRules, registered_as: str) -> "NameRules":
        """Return the rules of a profile, for a gateway that the host knows as `registered_as`."""
        prefix = rules.host_prefix.replace("{server}", registered_as)
        return cls(max(SMALLEST_BUDGET, rules.name_max - len(prefix)), re.compile(f"[^{rules.name_chars}]"))

    def legal(self, name: str) -> str:
        """Replace every character that the host does not accept by `_`."""
        return self.illegal.sub(_REPLACEMENT, name)

    def fitted(self, name: str, identity: str) -> str:
        """Make the name legal and fit it into the budget; if shortened, it ends with a hash of `identity`."""
        legal = self.legal(name)
        return legal if len(legal) <= self.budget else self.marked(legal, identity)

    def marked(self, name: str, identity: str) -> str:
        """Make the name legal and end it with a hash of `identity`, within the budget."""
        # A JSON string may contain lone surrogates, which strict UTF-8 cannot encode.
        digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
        return f"{name[: self.budget - _HASH - 1]}_{digest}"


@dataclass(frozen=True)
class Given:
    """An assigned name, and in words how it differs from the one wanted first, if it does."""

    name: str
    changes: tuple[str, ...] = ()
    collided: bool = False


@dataclass
class Names:
    """Assigns names, each once, to things of one `kind`."""

    rules: NameRules
    kind: str = "tool"
    _taken: set[str] = field(default_factory=set[str])

    def give(self, wanted: tuple[str, ...], identity: str) -> Given:
        """Assign the first of the wanted names that is free; if none is, the last one with a hash of `identity`.

        `identity` must be unique among all named things.
        """
        for index, name in enumerate(wanted):
            fitted = self.rules.fitted(name, identity)
            if fitted not in self._taken:
                return self._given(fitted, name, collided=index > 0)
        last, attempt = self.rules.legal(wanted[-1]), 0
        while True:
            # A second round is only necessary if an upstream chose a name for this very purpose.
            fitted = self.rules.marked(last, identity if not attempt else f"{identity} {attempt}")
            if fitted not in self._taken:
                return self._given(fitted, wanted[-1], collided=True)
            attempt += 1

    def _given(self, name: str, wanted: str, *, collided: bool) -> Given:
        self._taken.add(name)
        legal = self.rules.legal(wanted)
        changes = (
            "characters that the host does not take replaced" if legal != wanted else None,
            f"shortened to {self.rules.budget} characters" if len(legal) > self.rules.budget else None,
            f"another {self.kind} has that name" if collided else None,
        )
        return Given(name, tuple(change for change in changes if change), collided)
