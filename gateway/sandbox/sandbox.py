"""The sandbox: scripts run by Monty, an interpreter in processes without files, network or environment.

docs/decisions/code-mode-sandbox.md says why this one. A script has two processes, and both end with it: its
interpreter, and one of ours between that and the gateway (`gateway.sandbox.worker`), where its values are looked at.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import Any, NamedTuple

import anyio

from gateway.admission.fair_queue import FairQueue, NoSeat, WhyNot
from gateway.config.code_mode_settings import CodeModeSettings
from gateway.core.fact_words import plain, seconds_words, size_words
from gateway.core.model.json_values import as_list, as_object
from gateway.errors import ConfigError
from gateway.sandbox.faults import ScriptFailed, ScriptFault
from gateway.sandbox.last_call import LastCall
from gateway.sandbox.messages import SLEEP, ScriptLimits, pack_value
from gateway.sandbox.process import ProcessEnded, ScriptProcess
from gateway.sandbox.spare_process import SpareProcess
from gateway.system.extras import install_extra

logger = logging.getLogger(__name__)

EXTRA = "mcp-multimodal-gateway[code]"

_ENDED_BY_WATCH = 1
"""The exit code of a process that looked at a value for too long."""
_WAITING_PER_SEAT = 16
_LONGEST = 2_000

Function = Callable[[Sequence[Any], Mapping[str, Any]], Awaitable[Any]]
"""A function that scripts can call, with its arguments by position and by name, as JSON.

Raises ScriptFault or TypeError, which the script gets.
"""


class Functions(NamedTuple):
    """The functions of a script. `tools` can run at the same time; `helpers` answer at once.

    The helpers are those of `gateway.sandbox.script_functions`. `refused`: names, and why they cannot be called.
    """

    tools: Mapping[str, Function]
    helpers: Mapping[str, Function]
    refused: Mapping[str, str]


class Sandbox:
    """Runs scripts, as many at a time as the settings say. Callers take turns; one that runs none need not wait."""

    def __init__(self, settings: CodeModeSettings) -> None:
        seats = settings.scripts_at_once
        self._settings = settings
        self._processes = SpareProcess()
        self._turns = FairQueue(seats, spare=max(1, seats // 2), most_waiting=seats * _WAITING_PER_SEAT)

    def keeping_spare(self) -> AbstractAsyncContextManager[None]:
        """Keep a process ready for the next script, from the first script on, while this is open."""
        return self._processes.kept()

    async def run(
        self, code: str, functions: Functions, on_print: Callable[[str], None], caller: str = ""
    ) -> str | None:
        """Run a script of this caller, and return the value of its last line as text; None if it has none.

        `on_print` gets what it prints, before the next call.

        Raises:
            ScriptFailed: it failed, or was ended.
        """
        total, at = self._settings.total_time, LastCall()
        try:
            async with self._turns.seat(caller, total):
                with anyio.fail_after(total):
                    return await self._ran(code, functions, on_print, at)
        except NoSeat as no:
            raise ScriptFailed(_not_run(no.why, total)) from no
        except TimeoutError as error:
            raise ScriptFailed(f"it took longer than {total:g} s with its calls{at.words()}") from error

    async def _ran(self, code: str, functions: Functions, on_print: Callable[[str], None], at: LastCall) -> str | None:
        settings = self._settings
        try:
            process = await self._processes.take()
        except OSError as error:
            logger.exception("no process could be started for a script")
            raise ScriptFailed(_broken(str(error))) from error
        try:
            run = _Run(process, functions, on_print, settings, at)
            return await run.result(code)
        except ProcessEnded as error:
            if error.code != _ENDED_BY_WATCH:
                logger.warning("a script was ended: %s", error)
            raise _lost(error, settings, at) from error
        finally:
            await process.end()
            self._processes.want()


def open_sandbox(settings: CodeModeSettings) -> Sandbox:
    """Return the sandbox; no process is started before the first script.

    Raises:
        ConfigError: the extra `code` is not installed.
    """
    check_installed()
    return Sandbox(settings)


def check_installed() -> None:
    """Raise ConfigError if the extra `code` is not installed."""
    if find_spec("pydantic_monty") is None:
        raise ConfigError(
            "scripts need a package that is not installed",
            where="code_mode.enabled",
            remedy=f"install the extra code: `{install_extra('code')}`",
        )


class _Run:
    """One script while it runs."""

    def __init__(
        self,
        process: ScriptProcess,
        functions: Functions,
        on_print: Callable[[str], None],
        settings: CodeModeSettings,
        at: LastCall,
    ) -> None:
        self._process = process
        self._at = at
        self._functions = functions
        self._on_print = on_print
        self._settings = settings

    async def result(self, code: str) -> str | None:
        """Return what the script returns. Raises ScriptFailed or ProcessEnded."""
        settings = self._settings
        limits = ScriptLimits(
            settings.run_time, settings.memory, settings.max_calls, settings.max_text, settings.max_shown
        )
        names = {"tools": list(self._functions.tools), "refused": dict(self._functions.refused)}
        await self._process.send({"code": code, "limits": limits._asdict(), **names})
        error: ScriptFailed | ProcessEnded | None = None
        value: str | None = None
        async with anyio.create_task_group() as calls:
            try:
                while "done" not in (message := await self._process.receive()):
                    if "call" in message:
                        calls.start_soon(self._answer, message)
                    else:
                        self._take(message)
                value = None if message["done"] is None else str(message["done"])
            except (ScriptFailed, ProcessEnded) as failure:
                error = failure  # raised below: the task group would wrap it
            calls.cancel_scope.cancel()  # those that the script did not wait for
        if error is not None:
            raise error
        return value

    def _take(self, message: Mapping[str, Any]) -> None:
        """Take what was printed, or where the script is. Raises ScriptFailed if the message says that it has failed."""
        if "at" in message:
            self._at.set(message["at"])
        elif "printed" in message:
            self._on_print(str(message["printed"]))
        elif "failed" in message:
            failed = as_object(message["failed"])
            raise ScriptFailed(str(failed.get("words")), failed.get("line"), failed.get("code"))
        else:
            why = plain(str(message.get("broken")), _LONGEST)
            logger.error("a script could not be run: %s", why)
            raise ScriptFailed(_broken(why))

    async def _answer(self, message: Mapping[str, Any]) -> None:
        name, call = str(message.get("name")), message["call"]
        try:
            value = pack_value(await self._called(name, as_list(message.get("args")), as_object(message.get("kwargs"))))
            reply: dict[str, Any] = {"call": call, "value": value}
            await self._process.send(reply)
        except ScriptFault as error:
            await self._process.send({"call": call, "error": ["RuntimeError", str(error)]})
        except TypeError as error:
            await self._process.send({"call": call, "error": ["TypeError", str(error)]})
        except Exception:
            # A mistake of ours must not leave the script waiting, nor the task group as an ExceptionGroup.
            logger.exception("%s failed in a script", plain(name, 200))
            words = f"{plain(name, 200)}: the gateway failed; its log says why"
            await self._process.send({"call": call, "error": ["RuntimeError", words]})

    async def _called(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if name == SLEEP:
            return await anyio.sleep(float(args[0]))
        function = self._functions.tools.get(name) or self._functions.helpers.get(name)
        if function is None:
            raise ScriptFault(f"{plain(name, 100)} is not a function of this script")
        return await function(args, kwargs)


def _lost(error: ProcessEnded, settings: CodeModeSettings, at: LastCall) -> ScriptFailed:
    if error.code == _ENDED_BY_WATCH:
        words = (
            f"it was ended: it took longer than {settings.run_time:g} s to read the values that it gave to functions, "
            "or that it returned; one that holds another many times over, and so on, is as large as all of them"
        )
        return ScriptFailed(words, at.line)  # it is read while the script is at this line
    return ScriptFailed(
        f"it was ended: it may have taken more than {size_words(settings.memory)} of memory{at.words()}"
    )


def _broken(why: str) -> str:
    return f"no script can be run now: {why}; to mend it, install {EXTRA} again"


def _not_run(why: WhyNot, seconds: float) -> str:
    match why:
        case WhyNot.LATE:
            return f"it did not start within {seconds_words(seconds)}, because too many others run"
        case WhyNot.SHARE:
            return "it was not started: too many scripts of yours wait already; try again when some have ended"
        case WhyNot.FULL:
            return "it was not started: too many scripts wait already; try again when some have ended"
