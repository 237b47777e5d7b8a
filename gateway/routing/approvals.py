"""Calls that wait for the approval of their user, who gives it outside of the host: in a terminal, or by a tool."""

import json
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gateway.core.model.canonical_json import digest_of_json
from gateway.errors import ApprovalNeeded, InvalidRequest

MOST = 512
MOST_OF_ONE = 32
"""Maximum number of calls that wait, of all principals together and of one: hosts choose their own names."""

MOST_ROUNDS = 1_000
"""Maximum number of approved calls that are known to wait for a further round; older ones need another approval."""

LONGEST_ARGUMENTS = 4_000
"""Characters of the arguments that a person is shown. Longer ones are cut, which is said."""

_REMEDY = "mcp-gateway approvals ls"

Verdict = Literal["approved", "denied"]


@dataclass(frozen=True)
class CallToApprove:
    """A call that a rule lets pass only with an approval. `owner` is its host, `name` the tool as the host knows it."""

    owner: str
    principal: str
    client: str
    name: str
    upstream: str
    tool: str
    arguments: Mapping[str, Any]
    rule: str
    reason: str

    @property
    def key(self) -> str:
        """The key of an approval: this tool with these arguments, called by this host."""
        return digest_of_json([self.owner, self.upstream, self.tool, self.arguments])

    @property
    def shown_arguments(self) -> str:
        """The arguments as JSON, for people."""
        text = json.dumps(self.arguments, ensure_ascii=False, default=str)
        if len(text) <= LONGEST_ARGUMENTS:
            return text
        return f"{text[:LONGEST_ARGUMENTS]} [cut: {len(text):,} characters in all]"


AskHere: TypeAlias = Callable[[CallToApprove], Awaitable[Verdict]]
"""Asks whoever uses the gateway in this very process about a call."""


@dataclass
class WaitingCall:
    """A call that waits, or one that was settled and not repeated yet."""

    id: str
    call: CallToApprove
    asked: float
    verdict: Verdict | None = None

    @property
    def described(self) -> dict[str, Any]:
        """The call as JSON, for whoever is to decide."""
        return {
            "id": self.id,
            "asked": self.asked,
            "principal": self.call.principal,
            "host": self.call.client,
            "upstream": self.call.upstream,
            "tool": self.call.tool,
            "arguments": self.call.shown_arguments,
            "rule": self.call.rule,
            "reason": self.call.reason,
        }


class Approvals:
    """The calls that wait. Each approval is for one call, and is forgotten after `lasts` seconds.

    `on_verdict` is called with each verdict, and with who gave it: the `host`'s user, a `terminal`, a `tool`, or
    the `program` that the gateway runs in.
    """

    def __init__(
        self,
        lasts: float = 600.0,
        clock: Callable[[], float] = time.time,
        on_verdict: Callable[[CallToApprove, Verdict, str], None] | None = None,
    ) -> None:
        self.lasts = lasts
        self._on_verdict = on_verdict
        self._clock = clock
        self._waiting: dict[str, WaitingCall] = {}
        self._rounds: OrderedDict[tuple[str, str], None] = OrderedDict()
        self.ask_here: AskHere | None = None
        """Asks in this process, in whatever way the configuration wants; None: it cannot."""
        self.remedy_here: str | None = None
        """The remedy for a call that waits, if nothing outside of this process can approve it."""

    def given_here(self, ask: AskHere | None, remedy: str) -> None:
        """Let approvals be given in this process alone, which no `mcp-gateway approvals` reaches."""
        self.ask_here, self.remedy_here = ask, remedy

    def take(self, call: CallToApprove) -> Verdict | None:
        """Return what was decided about the call, which is used up by this; None if nothing was."""
        self._forget_old()
        waiting = self._waiting.get(call.key)
        if waiting is None or waiting.verdict is None:
            return None
        del self._waiting[call.key]
        return waiting.verdict

    def wait_for(self, call: CallToApprove) -> WaitingCall:
        """Let a call wait for its approval; the same call waits only once.

        If too many wait altogether, the oldest of the principal that has most of them is forgotten.

        Raises:
            ApprovalNeeded: too many of this principal wait already.
        """
        self._forget_old()
        if (known := self._waiting.get(call.key)) is not None:
            return known
        counts = Counter(each.call.principal for each in self._waiting.values())
        if counts[call.principal] >= MOST_OF_ONE:
            raise ApprovalNeeded("too many calls wait for an approval", rule=call.rule, remedy=_REMEDY)
        if len(self._waiting) >= MOST:
            self._forget_one_of(max(counts, key=counts.__getitem__))
        waiting = self._waiting[call.key] = WaitingCall(secrets.token_hex(5), call, self._clock())
        return waiting

    def settle(
        self, waiting_id: str, verdict: Verdict, *, by: str = "terminal", owner: str | None = None
    ) -> WaitingCall:
        """Approve or deny a call that waits; with `owner`, only one of this host.

        Raises:
            InvalidRequest: there is none with this id.
        """
        found = next((each for each in self.listed() if each.id == waiting_id), None)
        if found is None or owner not in (None, found.call.owner):
            raise InvalidRequest("no call with this id waits for an approval", remedy=_REMEDY)
        found.verdict, found.asked = verdict, self._clock()
        self._note(found.call, verdict, by)
        return found

    def answered(self, call: CallToApprove, verdict: Verdict, by: str = "host") -> None:
        """Report what the user has answered there; the call no longer waits, so that nothing else settles it."""
        self._waiting.pop(call.key, None)
        self._note(call, verdict, by)

    def expect_round(self, call: CallToApprove, state: object) -> None:
        """Remember that the upstream has answered an approved call with this state, which asks for a further round."""
        self._rounds[call.key, digest_of_json(state)] = None
        if len(self._rounds) > MOST_ROUNDS:
            self._rounds.popitem(last=False)

    def take_round(self, call: CallToApprove, state: object) -> bool:
        """Return whether a round of the call with this state was expected; it is used up by this."""
        key = call.key, digest_of_json(state)
        is_expected = key in self._rounds
        self._rounds.pop(key, None)
        return is_expected

    def listed(self) -> list[WaitingCall]:
        """Return the calls, oldest first."""
        self._forget_old()
        return list(self._waiting.values())

    def _note(self, call: CallToApprove, verdict: Verdict, by: str) -> None:
        if self._on_verdict is not None:
            self._on_verdict(call, verdict, by)

    def _forget_one_of(self, principal: str) -> None:
        of_theirs = (key for key, each in self._waiting.items() if each.call.principal == principal)
        del self._waiting[next(of_theirs)]

    def _forget_old(self) -> None:
        oldest = self._clock() - self.lasts
        for key in [key for key, each in self._waiting.items() if each.asked < oldest]:
            del self._waiting[key]
