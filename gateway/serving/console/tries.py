"""Requests that are tried in the console: each runs as a task, asks its questions in the page, and can be cancelled."""

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio.abc import TaskGroup

from gateway.core.apps import DECLARED
from gateway.core.model.caller import CONSOLE_CLIENT, Caller
from gateway.core.model.json_size import size_of
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.model.wire import METHOD_NOT_FOUND
from gateway.errors import GatewayError, HostRefused, InvalidRequest, TooManyCalls
from gateway.telemetry.call_history import CallHistory, PastCall
from gateway.telemetry.sanitize import neutral
from gateway.upstream.connection.host_requests import ELICITATION, SAMPLING
from gateway.upstream.connection.owners import host_of

if TYPE_CHECKING:
    from gateway.routing import Router

RUNNING_AT_ONCE = 8
KEPT = 32
_MOST_CHARACTERS = 64 * 1024 * 1024
"""Size of all results that are kept, in characters, which for base64 are bytes; the newest is kept in any case."""
_LOG_LINES = 50
_LONGEST_LINE = 1_000
_REJECTED = -1
"""The code for a user's refusal, as in the examples of the specification: client/sampling.mdx."""

State = Literal["running", "done", "failed", "cancelled"]

logger = logging.getLogger(__name__)


def operator(profile: str | None, principal: str, *, declares_pages: bool = True) -> Caller:
    """Return the operator at the console as a host, which can be asked questions. Sessions of upstreams are kept.

    `declares_pages`: whether it declares that it shows pages, as the console does; a host that is played may not.
    """
    able: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
    if declares_pages:
        able |= DECLARED
    return Caller(
        revision=NEWEST_HANDSHAKE,
        client_name=CONSOLE_CLIENT,
        profile=profile or None,
        principal=principal,
        capabilities=able,
        session="console",
    )


@dataclass(eq=False)
class Question:
    """What an upstream asks: a request to a host (`elicitation/create` or `sampling/createMessage`)."""

    number: int
    method: str
    params: Mapping[str, Any]
    answer: dict[str, Any] | None = None
    answered: anyio.Event = field(default_factory=anyio.Event)

    def give(self, answer: dict[str, Any] | None) -> None:
        """Answer it; None refuses to answer."""
        self.answer = answer
        self.answered.set()


@dataclass(eq=False)
class Try:
    """A request that is tried: what was asked for, how far it is, and what came of it.

    `progress` is done, of how much if known, and words. `result` is as the host gets it. `call` is the call of the
    history, for a tool.
    """

    id: str
    method: str
    params: Mapping[str, Any]
    caller: Caller
    state: State = "running"
    progress: tuple[float, float | None, str | None] | None = None
    lines: list[str] = field(default_factory=list[str])
    questions: list[Question] = field(default_factory=list[Question])
    result: Mapping[str, Any] | None = None
    error: GatewayError | None = None
    call: PastCall | None = None
    size: int = 0
    """The size of the result, in characters."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    stirred: anyio.Event = field(default_factory=anyio.Event)
    """Set when it ends or asks something for the first time."""


_CURRENT: ContextVar[Try | None] = ContextVar("the try that a call belongs to", default=None)


class Tries:
    """The tries of the console: at most 8 run at a time, and the newest 32 are kept, fewer if they are large.

    They run in `tasks`, and end with them.
    """

    def __init__(self, router: "Router", history: CallHistory, tasks: TaskGroup) -> None:
        self._router = router
        self._history = history
        self._tasks = tasks
        self._tries: OrderedDict[str, Try] = OrderedDict()

    def begin(self, method: str, params: Mapping[str, Any], caller: Caller) -> Try:
        """Begin a request, and return it while it runs. Raises TooManyCalls."""
        running = sum(one.state == "running" for one in self._tries.values())
        if running >= RUNNING_AT_ONCE:
            raise TooManyCalls(
                f"{running} requests of the console are running", remedy="wait for one of them, or cancel it"
            )
        begun = Try(secrets.token_urlsafe(9), method, params, caller)
        self._tries[begun.id] = begun
        self._drop_oldest()
        self._tasks.start_soon(self._run, begun)
        return begun

    def find(self, name: str) -> Try:
        """Return a try. Raises InvalidRequest if it is not kept, or no longer."""
        found = self._tries.get(name)
        if found is None:
            raise InvalidRequest("this try is not kept any more", remedy="its call is among the calls; or try it again")
        return found

    def _drop_oldest(self) -> None:
        ended = [one for one in self._tries.values() if one.state != "running"]
        size = sum(one.size for one in ended)
        for one in ended[:-1]:
            if len(self._tries) <= KEPT and size <= _MOST_CHARACTERS:
                return
            size -= one.size
            del self._tries[one.id]

    async def _run(self, one: Try) -> None:
        _CURRENT.set(one)
        stop = self._watched(one)
        try:
            with one.scope:
                one.result = await self._router.respond(
                    one.method, one.params, one.caller, on_progress=_Progress(one), host=_Page(one)
                )
                one.state, one.size = "done", size_of(one.result).total
        except GatewayError as error:
            one.state, one.error = "failed", error
        except Exception as error:
            # One faulty answer must not end the console, whose task group this runs in.
            logger.exception("a try in the console failed")
            one.state, one.error = "failed", GatewayError(f"{type(error).__name__}, see the log")
        finally:
            stop()
            if one.state == "running":
                one.state = "cancelled"
            self._drop_oldest()
            one.questions.clear()
            one.stirred.set()
            one.ended.set()

    def _watched(self, one: Try) -> Callable[[], None]:
        """Note the call of the history that belongs to the try; the function returned ends this."""

        def begun(call: PastCall) -> None:
            if one.call is None and call.is_running and _CURRENT.get() is one:
                one.call = call

        try:
            return self._history.listen(begun)
        except OverflowError:  # then the page has no link to its call
            return lambda: None


class _Progress:
    def __init__(self, one: Try) -> None:
        self._try = one

    async def __call__(self, done: float, of: float | None, words: str | None) -> None:
        last = self._try.progress
        said = neutral(words[:_LONGEST_LINE]) if words else (last[2] if last else None)
        self._try.progress = (done, of, said)


class _Page:
    """The console's page as the host in front of a call."""

    bounds_waiting = False

    def __init__(self, one: Try) -> None:
        self._try = one
        self._asked = 0

    @property
    def party(self) -> str:
        return host_of(self._try.caller)

    @property
    def connection(self) -> None:
        """There is nobody to ask once the call is over."""

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Show the question, and return its answer. Raises HostRefused if there is none."""
        if method not in (ELICITATION, SAMPLING):
            raise HostRefused(METHOD_NOT_FOUND, f"the console does not answer {method}")
        self._asked += 1
        question = Question(self._asked, method, params)
        self._try.questions.append(question)
        self._try.stirred.set()
        try:
            await question.answered.wait()
        finally:
            if question in self._try.questions:
                self._try.questions.remove(question)
        if question.answer is None:
            raise HostRefused(_REJECTED, "User rejected sampling request")
        return question.answer

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Note a message of the upstream's log."""
        if method == "notifications/message" and len(self._try.lines) < _LOG_LINES:
            self._try.lines.append(neutral(f"{params.get('level', '')}: {params.get('data', '')}"[:_LONGEST_LINE]))

    async def let_go(self) -> None:
        """The page asks for its answer itself."""
