"""The sandbox: scripts run by Monty, an interpreter in worker processes without files, network or environment.

docs/decisions/code-mode-sandbox.md says why this one. A worker runs one script and ends. Monty bounds its time and
memory, and kills it if it does not stop; what its code can do is compute, and suspend with a call that we answer.
"""

import io
import tokenize
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio.abc import TaskGroup

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.core.model.json_values import is_dict, is_list
from gateway.core.near_names import did_you_mean
from gateway.core.wording import counted, plain, size_words
from gateway.errors import ConfigError
from gateway.routing.code_mode.media import Media
from gateway.routing.code_mode.values import ScriptFault

if TYPE_CHECKING:
    from pydantic_monty import (
        AsyncFunctionSnapshot,
        AsyncFutureSnapshot,
        AsyncMonty,
        AsyncMontySession,
        AsyncSnapshot,
        ExternalSettledResult,
        MontyError,
        ResourceLimits,
    )

EXTRA = "mcp-multimodal-gateway[code]"

_GRACE = 1.0
"""Seconds after its time for which a script may go on before its worker is killed."""
_DEEPEST_CALLS = 500
_SUSPENSIONS_OF_A_CALL = 4
_OTHER_SUSPENSIONS = 2_000
_LONGEST_SLEEP = 60.0
_LONGEST = 2_000
_SHOWN_LINE = 200

Function = Callable[[tuple[Any, ...], Mapping[str, Any]], Awaitable[Any]]
"""A function that scripts can call, with its arguments by position and by name. Raises ScriptFault."""


class Functions(NamedTuple):
    """The functions of a script. `tools` can run at the same time; `helpers` answer at once."""

    tools: Mapping[str, Function]
    helpers: Mapping[str, Function]


class ScriptFailed(Exception):
    """A script that did not end as it should: why, in words for the model, and on which line if that is known."""

    def __init__(self, words: str, line: int | None = None, code: str | None = None) -> None:
        super().__init__(words)
        self.words, self.line, self.code = words, line, code


class Sandbox:
    """Runs scripts, as many at a time as the settings say."""

    def __init__(self, pool: "AsyncMonty", settings: CodeModeSettings) -> None:
        self._pool = pool
        self._settings = settings

    async def run(self, code: str, functions: Functions, on_print: Callable[[str], None]) -> Any:
        """Run a script and return the value of its last line. `on_print` gets what it prints, before the next call.

        Raises:
            ScriptFailed: it failed, or was ended.
        """
        from pydantic_monty import MontyError

        settings = self._settings
        limits: ResourceLimits = {
            "max_feed_duration_secs": settings.run_time,
            "max_memory": settings.memory,
            "max_recursion_depth": _DEEPEST_CALLS,
            "max_suspensions": settings.max_calls * _SUSPENSIONS_OF_A_CALL + _OTHER_SUSPENSIONS,
        }
        printed = _Printed(on_print, settings.max_text)
        try:
            with anyio.fail_after(settings.total_time):
                async with self._pool.checkout(script_name="script", limits=limits) as session:
                    return await _Run(session, functions, printed, does_await(code)).result(code)
        except MontyError as error:
            raise _failed(error, settings, printed) from error
        except TimeoutError as error:
            raise ScriptFailed(f"it took longer than {settings.total_time:g} s with its calls") from error


@asynccontextmanager
async def open_sandbox(settings: CodeModeSettings) -> AsyncGenerator[Sandbox]:
    """Open the sandbox; no worker is started before the first script.

    Raises:
        ConfigError: the extra `code` is not installed.
    """
    try:
        from pydantic_monty import AsyncMonty
    except ImportError as error:
        raise ConfigError(
            "scripts need a package that is not installed",
            where="code_mode.enabled",
            remedy=f"install the extra code, as in pip install '{EXTRA}'",
        ) from error
    pool = AsyncMonty(
        min_processes=0,
        max_processes=settings.scripts_at_once,
        max_checkouts_per_worker=1,  # nothing of one caller's script is there for the next
        feed_duration_limit_grace=_GRACE,
    )
    try:
        async with pool:
            yield Sandbox(pool, settings)
    except FileNotFoundError as error:
        raise ConfigError(
            "the program that runs scripts is not there", where="code_mode.enabled", remedy=f"reinstall {EXTRA}"
        ) from error


class _Printed:
    """Passes on what a script prints, up to a limit."""

    def __init__(self, on_print: Callable[[str], None], limit: int) -> None:
        self._on_print = on_print
        self._left = limit
        self.is_too_much = False

    def __call__(self, stream: str, text: str) -> None:
        """Called by Monty, in a thread of its own; what this raises ends the script."""
        self._on_print(text[: max(0, self._left)])
        self._left -= len(text.encode("utf-8", "replace"))
        if self._left < 0:
            self.is_too_much = True
            raise MemoryError("too much printed")


class _Run:
    """One script while it runs."""

    def __init__(self, session: "AsyncMontySession", functions: Functions, printed: _Printed, awaits: bool) -> None:
        self._session = session
        self._functions = functions
        self._printed = printed
        self._awaits = awaits
        self._settled: dict[int, ExternalSettledResult] = {}
        self._has_settled = anyio.Event()
        self._known = dict.fromkeys((*functions.tools, *functions.helpers), _stand_in)

    async def result(self, code: str) -> Any:
        from pydantic_monty import MontyComplete, MontyError

        failed: MontyError | None = None
        output: Any = None
        async with anyio.create_task_group() as calls:
            try:
                snapshot = await self._session.feed_start(
                    code, print_callback=self._printed, external_lookup=self._known
                )
                while not isinstance(snapshot, MontyComplete):
                    snapshot = await self._answered(snapshot, calls)
                output = snapshot.output
            except MontyError as error:
                failed = error  # raised below: the task group would wrap it
            calls.cancel_scope.cancel()  # those that the script did not wait for
        if failed is not None:
            raise failed
        return output

    async def _answered(self, snapshot: "AsyncSnapshot", calls: TaskGroup) -> "AsyncSnapshot":
        from pydantic_monty import AsyncFunctionSnapshot, AsyncFutureSnapshot, AsyncNameLookupSnapshot

        if isinstance(snapshot, AsyncFunctionSnapshot):
            return await self._called(snapshot, calls)
        if isinstance(snapshot, AsyncFutureSnapshot):
            return await self._waited(snapshot)
        assert isinstance(snapshot, AsyncNameLookupSnapshot)
        return await snapshot.resume_auto()

    async def _called(self, snapshot: "AsyncFunctionSnapshot", calls: TaskGroup) -> "AsyncSnapshot":
        name = str(snapshot.function_name)
        if snapshot.object_id is not None:  # a method of media, which has none
            return await snapshot.resume_auto()
        work = self._work(snapshot, name)
        if work is None:
            return await snapshot.resume_not_handled()
        runs_beside = snapshot.allow_eager_await or name == "system.async_sleep"
        if runs_beside or (self._awaits and name in self._functions.tools):
            calls.start_soon(self._settle, snapshot.call_id, work)
            return await snapshot.resume({"future": ...})
        return await snapshot.resume(await _outcome(work))

    def _work(self, snapshot: "AsyncFunctionSnapshot", name: str) -> Callable[[], Awaitable[Any]] | None:
        """Return what a call does; None if scripts cannot do it."""
        if snapshot.is_os_function:
            return (lambda: _sleep(snapshot.args)) if name in ("system.sleep", "system.async_sleep") else None
        function = self._functions.tools.get(name) or self._functions.helpers.get(name)
        if function is None:
            return lambda: self._unknown(name)
        return lambda: function(snapshot.args, snapshot.kwargs)

    async def _unknown(self, name: str) -> None:
        near = did_you_mean(name, [*self._functions.tools, *self._functions.helpers])
        raise NameError(f"name {plain(name, 100)!r} is not defined{f'; {near}' if near else ''}")

    async def _settle(self, call_id: int, work: Callable[[], Awaitable[Any]]) -> None:
        self._settled[call_id] = await _outcome(work)
        self._has_settled.set()

    async def _waited(self, snapshot: "AsyncFutureSnapshot") -> "AsyncSnapshot":
        while not (ready := [call for call in snapshot.pending_call_ids if call in self._settled]):
            await self._has_settled.wait()
            self._has_settled = anyio.Event()
        return await snapshot.resume({call: self._settled.pop(call) for call in ready})


async def _outcome(work: Callable[[], Awaitable[Any]]) -> "ExternalSettledResult":
    """Return a call's result or error as Monty takes it."""
    try:
        return {"return_value": _wrapped(await work())}
    except ScriptFault as error:
        return {"exc_type": "RuntimeError", "message": str(error)}
    except TypeError as error:
        return {"exc_type": "TypeError", "message": str(error)}
    except NameError as error:
        return {"exc_type": "NameError", "message": str(error)}


async def _sleep(args: tuple[Any, ...]) -> None:
    seconds = args[0] if args else 0
    await anyio.sleep(min(float(seconds), _LONGEST_SLEEP))


def _stand_in() -> None:
    """Tells Monty that a name is a function: the calls are answered above."""


def _wrapped(value: Any) -> Any:
    """Return a value with its media as objects that Monty takes: their attributes, and nothing else of ours."""
    from pydantic_monty import ClassInstance

    if isinstance(value, Media):
        return ClassInstance(value, eager_attrs="all")
    if is_dict(value):
        return {key: _wrapped(each) for key, each in value.items()}
    if is_list(value):
        return [_wrapped(each) for each in value]
    return value


def does_await(code: str) -> bool:
    """Whether a script says `await` anywhere: then it waits for its calls itself, and they can run at the same time."""
    try:
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        return any(token.type == tokenize.NAME and token.string == "await" for token in tokens)
    except (tokenize.TokenError, SyntaxError):  # the sandbox says what is wrong with it
        return False


def _failed(error: "MontyError", settings: CodeModeSettings, printed: _Printed) -> ScriptFailed:
    from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError

    if isinstance(error, MontyCrashedError):
        return ScriptFailed(
            f"it was ended: it ran longer than {settings.run_time:g} s, or took more than {size_words(settings.memory)}"
        )
    if not isinstance(error, MontyRuntimeError | MontySyntaxError):
        return ScriptFailed(plain(str(error), _LONGEST))
    frames = error.traceback()
    own = next((frame for frame in reversed(frames) if frame.source_line), None)
    words = _reason(error.display("type-msg"), settings, printed)
    code = plain((own.source_line or "").strip(), _SHOWN_LINE) if own is not None else None
    return ScriptFailed(words, own.line if own is not None else None, code)


def _reason(said: str, settings: CodeModeSettings, printed: _Printed) -> str:
    if printed.is_too_much:
        return f"it printed more than {size_words(settings.max_text)}"
    if said.startswith("TimeoutError: feed time limit"):
        return f"it ran longer than {settings.run_time:g} s, without the calls that it waited for"
    if said.startswith("MemoryError"):
        return f"it took more than {size_words(settings.memory)} of memory"
    if said.startswith("RuntimeError: suspension limit"):
        return f"it called functions too often; {counted(settings.max_calls, 'tool call')} are allowed"
    if "'coroutine' object" in said:
        return f"{plain(said, _LONGEST)}; a script that uses await has to await each call of a tool"
    return plain(said, _LONGEST)
