"""Suspended calls, for a modern host in front of an upstream of the handshake era.

The upstream asks for input in the middle of a call, which keeps running here. The host gets a result that asks for the
input, and repeats its request with the answers and a `requestState` that names the suspended call.
"""

import logging
import math
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from anyio.abc import TaskGroup

from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_dict
from gateway.core.model.wire import INTERNAL_ERROR, METHOD_NOT_FOUND
from gateway.errors import GatewayError, HostRefused, InvalidRequest
from gateway.upstream.bridging.input_requests import INPUT_REQUIRED, can_answer, for_modern
from gateway.upstream.connection.host_requests import ELICITATION, Host
from gateway.upstream.connection.owners import host_of
from gateway.upstream.connection.request_context import RequestContext

MOST = 256
"""The maximum number of suspended calls of all hosts together."""

MOST_OF_ONE = 64
"""The maximum number of suspended calls of one host; more are refused."""

logger = logging.getLogger(__name__)

Work = Callable[["SuspendedCall"], Awaitable[dict[str, Any]]]
"""Runs the call on the upstream, with the suspended call as its host."""


class _Question:
    """A request of the upstream that waits for the host."""

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self.method = method
        self.params = params
        self.answered = anyio.Event()
        self.answer: dict[str, Any] | None = None


class SuspendedCall:
    """A call that outlives the host's request, and acts as the host for the upstream.

    Notifications of the upstream go to the host's current request, while there is one.
    """

    bounds_waiting = True
    """`SuspendedCalls` cancels a call whose host does not come back."""

    def __init__(self, context: RequestContext) -> None:
        self.id = secrets.token_urlsafe(18)
        self.caller = context.caller
        self.owner = host_of(context.caller)
        self.party = context.host.party if context.host is not None else self.owner
        self.connection: Host | None = None
        self.scope = anyio.CancelScope()
        self.result: dict[str, Any] | None = None
        self.error: GatewayError | None = None
        self._host = context.host
        self._on_progress = context.on_progress
        self._questions: dict[str, _Question] = {}
        self._count = 0
        self._has_ended = False
        self._news = anyio.Event()

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""
        return self.result is not None or self.error is not None

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until the host has repeated its request with an answer to this request.

        If the call ends before, nobody has chosen anything: servers know that of a person who closes a form.

        Raises HostRefused if the host cannot answer this kind of request, its answer is not a result, or the call ends.
        """
        if not can_answer(self.caller, method, params):
            raise HostRefused(METHOD_NOT_FOUND, f"the host did not declare that it answers {method}")
        self._count += 1
        key = f"{method.split('/')[0]}-{self._count}"
        question = self._questions[key] = _Question(method, for_modern(method, params))
        self._tell()
        try:
            await question.answered.wait()
        finally:
            self._questions.pop(key, None)
        if self._has_ended and question.answer is None:
            if method == ELICITATION:
                return {"action": "cancel"}
            raise HostRefused(INTERNAL_ERROR, f"{method}: the call that it belongs to has ended")
        if question.answer is None:
            raise HostRefused(INTERNAL_ERROR, f"{method}: the host's answer is not a result")
        return question.answer

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification to the host's current request."""
        if self._host is not None:
            await self._host.tell(method, params)

    async def let_go(self) -> None:
        """Do nothing: a modern host cannot return to a stream."""

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass progress to the host's current request."""
        if self._on_progress is not None:
            await self._on_progress(progress, total, message)

    def leave(self) -> None:
        """Detach the host's request, which has been answered. Notifications are dropped until the next one."""
        self._host = self._on_progress = None

    def resume(self, answers: Mapping[str, Any], context: RequestContext) -> None:
        """Attach the host's next request, with answers to some or all of the questions."""
        self._host, self._on_progress = context.host, context.on_progress
        for key, answer in answers.items():
            if (question := self._questions.get(key)) is not None and not question.answered.is_set():
                question.answer = as_dict(answer)
                question.answered.set()

    def over(self, result: dict[str, Any] | None, error: GatewayError | None) -> None:
        """Record the end of the call."""
        self.result, self.error = result, error
        self._tell()

    def withdraw(self) -> None:
        """End the questions of a call that no longer runs on the upstream: nobody will answer them."""
        self._has_ended = True
        for question in self._questions.values():
            question.answered.set()

    async def until_news(self) -> dict[str, Any]:
        """Wait until the call has ended or needs the host. Return the requests for the host by key, if any."""
        while not self.is_over:
            news = self._news
            if open_questions := {key: one for key, one in self._questions.items() if not one.answered.is_set()}:
                return {key: {"method": one.method, "params": one.params} for key, one in open_questions.items()}
            await news.wait()
        return {}

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


class SuspendedCalls:
    """Runs the calls that may have to wait for their hosts in `tasks`; each waits for `patience` seconds.

    If all places are taken, the oldest call of the principal that has the most, and of its host with the most, is
    cancelled for a principal that has fewer; within a principal, for a host that has fewer.
    """

    def __init__(self, tasks: TaskGroup, *, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._tasks = tasks
        self._most = most
        self._most_of_one = most_of_one
        self._suspended_calls: dict[str, SuspendedCall] = {}

    def __len__(self) -> int:
        return len(self._suspended_calls)

    async def begin(
        self, work: Work, context: RequestContext, patience: float
    ) -> tuple[dict[str, Any], SuspendedCall | None]:
        """Run a call. Return its result, or a result that asks the host for input and the call that waits for it.

        Raises what the call raises, and InvalidRequest if too many calls are waiting.
        """
        call = SuspendedCall(context)
        self._tasks.start_soon(self._run, call, work)
        return await self._wait(call, patience)

    async def resume(
        self,
        call_id: str,
        answers: Mapping[str, Any],
        context: RequestContext,
        patience: float,
    ) -> tuple[dict[str, Any], SuspendedCall | None]:
        """Continue a suspended call; returns and raises as `begin` does.

        Raises InvalidRequest if the call is no longer waiting.
        """
        call = self._suspended_calls.pop(call_id, None)
        if call is None or call.scope.cancel_called:
            remedy = "repeat the request without requestState"
            raise InvalidRequest("the call that requestState names is no longer waiting", remedy=remedy)
        if call.is_over:  # only its result was waiting
            call.scope.cancel()
        call.scope.deadline = math.inf
        call.resume(answers, context)
        return await self._wait(call, patience)

    def left(self, session: str) -> None:
        """Cancel the suspended calls of a host's session, which has ended."""
        for call in [call for call in self._suspended_calls.values() if call.caller.session == session]:
            self._give_up(call)

    async def _run(self, call: SuspendedCall, work: Work) -> None:
        with call.scope:
            try:
                result = await work(call)
            except GatewayError as error:
                call.over(None, error)
            except Exception as error:  # a bug of ours must not end the calls of everybody else
                logger.exception("a call that may be suspended failed")
                call.over(None, GatewayError(f"the call failed: {type(error).__name__}"))
            else:
                call.over(result, None)
            finally:
                call.withdraw()
            if call.id in self._suspended_calls:  # the outcome waits for the host, like the question before
                await anyio.sleep_forever()
        self._suspended_calls.pop(call.id, None)

    async def _wait(self, call: SuspendedCall, patience: float) -> tuple[dict[str, Any], SuspendedCall | None]:
        try:
            requests = await call.until_news()
        except BaseException:  # the host cancelled its request, so the call is cancelled on the upstream too
            call.scope.cancel()
            raise
        finally:
            call.leave()
        if call.error is not None:
            raise call.error
        if call.result is not None:
            return call.result, None
        if (reason := self._crowded(call)) is not None:
            call.scope.cancel()
            raise InvalidRequest(f"{reason}, and there is no room for another", remedy="try again later")
        self._suspended_calls[call.id] = call
        call.scope.deadline = anyio.current_time() + patience
        return {"resultType": INPUT_REQUIRED, "inputRequests": requests}, call

    def _crowded(self, call: SuspendedCall) -> str | None:
        """Return why there is no room for this call; None if there is, maybe after cancelling another host's oldest."""
        mine = Counter(one.owner for one in self._of(call.caller.principal))
        if mine[call.owner] >= self._most_of_one:
            return f"{self._most_of_one} calls of this host are waiting for its answers"
        if len(self._suspended_calls) < self._most:
            return None
        if (excess := self._excess(call, mine)) is None:
            return f"{self._most} calls are waiting for an answer of their hosts"
        self._give_up(excess)
        return None

    def _excess(self, call: SuspendedCall, mine: Counter[str]) -> SuspendedCall | None:
        """Return the call to cancel for another one; `mine` counts those of its principal by host. None: there is none.

        Whoever loses a call has as many as whoever gets the place even afterwards, or more.
        """
        principals = Counter(one.caller.principal for one in self._suspended_calls.values())
        greedy, most = principals.most_common(1)[0]
        if most > principals[call.caller.principal] + 1:
            return self._oldest_of_busiest(Counter(one.owner for one in self._of(greedy)))
        if mine and mine.most_common(1)[0][1] > mine[call.owner] + 1:
            return self._oldest_of_busiest(mine)
        return None

    def _of(self, principal: str) -> list[SuspendedCall]:
        return [call for call in self._suspended_calls.values() if call.caller.principal == principal]

    def _oldest_of_busiest(self, by_host: Counter[str]) -> SuspendedCall:
        busiest = by_host.most_common(1)[0][0]
        return next(call for call in self._suspended_calls.values() if call.owner == busiest)

    def _give_up(self, call: SuspendedCall) -> None:
        name = plain(call.caller.client_name or "a host", 100)
        logger.info("a call that waits for an answer of %s is cancelled", name)
        self._suspended_calls.pop(call.id, None)
        call.scope.cancel()
