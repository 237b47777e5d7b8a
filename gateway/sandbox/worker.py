"""The process of one script: it drives the interpreter, which runs in a further process, and ends with its stdin.

    python -m gateway.sandbox.worker

What a script gives to a function, or returns, becomes Python objects here, and that alone can take for ever: a tuple
that holds another ten times over, and so on, takes no memory, but hashing it walks all of it without a pause. So a
watch of the C library ends this process when that has taken longer than the script may run, the kernel bounds its
memory, and only JSON of bounded size leaves it. It ends, and the interpreter with it, when the gateway is gone.
"""

import faulthandler
import os
import queue
import signal
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO

from gateway.core.fact_words import plain, size_words
from gateway.core.near_names import did_you_mean
from gateway.sandbox.faults import ScriptFailed, ScriptFault
from gateway.sandbox.last_call import LastCall
from gateway.sandbox.media import Media
from gateway.sandbox.messages import (
    LARGEST,
    MOST_ARGUMENTS,
    MOST_SENT,
    SLEEP,
    ScriptLimits,
    TooLarge,
    pack,
    read_message,
    too_many_calls,
    unpack_value,
)
from gateway.sandbox.monty_failures import failed
from gateway.sandbox.printed import Printed
from gateway.sandbox.script_functions import FIND, HELPERS, Answered, Asked, asked_of_tool, does_await, show, sleep
from gateway.sandbox.script_values import to_text
from gateway.system.private_stdio import private_stdio

if TYPE_CHECKING:
    from pydantic_monty import (
        ExternalSettledResult,
        FunctionSnapshot,
        FutureSnapshot,
        ResourceLimits,
        SyncSnapshot,
    )

_GRACE = 1.0
"""Seconds after its time for which a script may go on before its interpreter is killed."""
_DEEPEST_CALLS = 500
_SUSPENSIONS_OF_A_CALL = 4
_OTHER_SUSPENSIONS = 2_000
_ROOM = 512 * 1024 * 1024
"""Address space for code and threads."""
_AS_OBJECTS = 4
"""How much larger values are as objects of Python than as the script has them, at most."""
_SLEEPS = {"system.sleep": False, "system.async_sleep": True}
"""Names of the interpreter, and whether the script goes on meanwhile."""


def main() -> None:
    """Run the script that comes from stdin, and answer with what it does until it ends."""
    messages, answers = private_stdio()
    # Ctrl-C in a terminal reaches the whole process group; ending scripts is the gateway's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(Exception):  # while it waits for a script; if it cannot be, the script is told
        import_module("pydantic_monty")
    start = read_message(messages)
    if start is not None:
        worker = Worker(messages, answers, start)
        threading.Thread(target=worker.listen, daemon=True).start()
        worker.run()


class Worker:
    """Runs one script."""

    def __init__(self, messages: BinaryIO, answers: BinaryIO, start: Mapping[str, Any]) -> None:
        self._messages = messages
        self._answers = answers
        self._code = str(start["code"])
        self._limits = limits = ScriptLimits(**start["limits"])
        self._tools = frozenset(start["tools"])
        self._refused: Mapping[str, str] = start["refused"]
        self._known = dict.fromkeys((*self._tools, *HELPERS, "show", *self._refused), _stand_in)
        self._awaits = does_await(self._code)
        self._printed = Printed(self._send_printed, limits.max_text)
        self._nowhere = os.open(os.devnull, os.O_WRONLY)
        self._left_to_send = MOST_SENT
        self._left_to_convert = limits.run_time
        self._source = self._code.encode("utf-8", "replace")
        self._at = LastCall()
        self._interpreter: int | None = None
        self._calls = 0
        self._replies: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._settled: dict[int, ExternalSettledResult] = {}
        """By the numbers that the interpreter gives to calls."""

    def listen(self) -> None:
        """Take the gateway's replies until it is gone; then end everything at once."""
        try:
            while (message := read_message(self._messages)) is not None:
                self._replies.put(message)
        finally:
            self._end()

    def run(self) -> None:
        """Run the script, and send how it ended."""
        _limit_memory(_ROOM + _AS_OBJECTS * self._limits.memory)
        try:
            self._send(self._outcome())
        except FileNotFoundError:
            self._send({"broken": "the interpreter's program is not installed"})
        except Exception as error:  # a mistake of ours, or of the interpreter's: the gateway logs it
            self._send({"broken": f"{type(error).__name__}: {plain(str(error), 500)}"})
        self._end()

    def _end(self) -> None:
        if self._interpreter is not None:
            with suppress(OSError):
                os.kill(self._interpreter, getattr(signal, "SIGKILL", signal.SIGTERM))
        os._exit(0)

    def _outcome(self) -> dict[str, Any]:
        from pydantic_monty import MontyError

        try:
            value = self._ran()
            self._printed.flush()
        except MontyError as error:
            self._printed.flush()
            ended = failed(error, self._limits, self._at, is_too_much_printed=self._printed.is_too_much)
        except ScriptFault as error:
            ended = ScriptFailed(str(error))
        except MemoryError:
            ended = ScriptFailed(f"it took more than {size_words(self._limits.memory)} of memory")
        else:
            return {"done": value}
        return {"failed": {"words": ended.words, "line": ended.line, "code": ended.code}}

    def _ran(self) -> str | None:
        """Run the script; return the value of its last line as text."""
        from pydantic_monty import Monty, MontyComplete

        limits: ResourceLimits = {
            "max_feed_duration_secs": self._limits.run_time,
            "max_memory": self._limits.memory,
            "max_recursion_depth": _DEEPEST_CALLS,
            "max_suspensions": self._limits.max_calls * _SUSPENSIONS_OF_A_CALL + _OTHER_SUSPENSIONS,
        }
        pool = Monty(min_processes=0, max_processes=1, max_checkouts_per_worker=1, feed_duration_limit_grace=_GRACE)
        with pool, pool.checkout(script_name="script", limits=limits) as session:
            self._interpreter = session.worker_pid
            try:
                snapshot = session.feed_start(self._code, print_callback=self._printed, external_lookup=self._known)
                while not isinstance(snapshot, MontyComplete):
                    snapshot = self._answered(snapshot)
                with self._converting(self._source.rstrip().count(b"\n") + 1):
                    value = snapshot.output
                    return None if value is None else to_text(value)[: self._limits.max_shown + 1]
            finally:
                self._interpreter = None  # its process is about to be gone

    def _answered(self, snapshot: "SyncSnapshot") -> "SyncSnapshot":
        from pydantic_monty import FunctionSnapshot, FutureSnapshot, NameLookupSnapshot

        if isinstance(snapshot, FunctionSnapshot):
            return self._called(snapshot)
        if isinstance(snapshot, FutureSnapshot):
            return self._waited(snapshot)
        assert isinstance(snapshot, NameLookupSnapshot)
        return snapshot.resume_auto()

    def _called(self, snapshot: "FunctionSnapshot") -> "SyncSnapshot":
        name = str(snapshot.function_name)
        if snapshot.object_id is not None:
            return snapshot.resume({"exc_type": "AttributeError", "message": f"Media has no {plain(name, 100)}()"})
        if snapshot.is_os_function and name not in _SLEEPS:
            return snapshot.resume_not_handled()
        try:
            with self._converting(self._line_of(snapshot)):
                asked = self._asked(name, snapshot)
            if isinstance(asked, Answered):
                return snapshot.resume(_returned(asked.value))
            call = self._ask(SLEEP if snapshot.is_os_function else name, asked, snapshot.call_id)
        except (ScriptFault, TypeError, NameError) as error:
            kind = "RuntimeError" if isinstance(error, ScriptFault) else type(error).__name__
            return snapshot.resume(_raised(kind, str(error)))
        runs_beside = _SLEEPS[name] if snapshot.is_os_function else snapshot.allow_eager_await
        if runs_beside or (self._awaits and name in self._tools):
            return snapshot.resume({"future": ...})
        while call not in self._settled:
            self._take_reply()
        return snapshot.resume(self._settled.pop(call))

    def _line_of(self, snapshot: "FunctionSnapshot") -> int | None:
        position = snapshot.position
        if not position.filename.startswith("<python-input"):  # a text that the script evaluates has lines of its own
            return None
        return self._source.count(b"\n", 0, position.start) + 1

    def _asked(self, name: str, snapshot: "FunctionSnapshot") -> Asked | Answered:
        """Return what a call asks of the gateway. Raises ScriptFault, TypeError or NameError, which the script gets."""
        if name in self._tools or name == FIND:
            # The gateway counts too. A script that goes on after it is told so must not keep the gateway busy.
            if self._calls >= self._limits.max_calls:
                raise ScriptFault(too_many_calls(self._limits.max_calls))
            self._calls += 1
        args, kwargs = snapshot.args, snapshot.kwargs
        if snapshot.is_os_function:
            return sleep(args)
        if name in self._tools:
            return asked_of_tool(args, kwargs)
        if name == "show":
            return show(args, kwargs, self._limits.max_shown)
        if name in HELPERS:
            return HELPERS[name](args, kwargs)
        if name in self._refused:
            raise ScriptFault(self._refused[name])
        near = did_you_mean(name, list(self._known))
        raise NameError(f"name {plain(name, 100)!r} is not defined{f'; {near}' if near else ''}")

    def _ask(self, name: str, asked: Asked, call: int) -> int:
        try:
            message = {"call": call, "name": name, "args": asked.args, "kwargs": asked.kwargs}
            most = MOST_ARGUMENTS if name in self._tools else LARGEST
            self._left_to_send -= self._send(message, min(most, self._left_to_send))
        except TooLarge:
            raise ScriptFault(
                f"a script may give a function at most {size_words(MOST_ARGUMENTS)}, and all of them "
                f"{size_words(MOST_SENT)}"
            ) from None
        return call

    def _waited(self, snapshot: "FutureSnapshot") -> "SyncSnapshot":
        while not (ready := [call for call in snapshot.pending_call_ids if call in self._settled]):
            self._take_reply()
        return snapshot.resume({call: self._settled.pop(call) for call in ready})

    def _take_reply(self) -> None:
        reply = self._replies.get()
        error = reply.get("error")
        self._settled[reply["call"]] = _raised(*error) if error else _returned(unpack_value(reply["value"]))

    def _send_printed(self, text: str) -> None:
        self._send({"printed": text})

    def _send(self, message: Mapping[str, Any], most: int = LARGEST) -> int:
        """Send a message and return its size. Raises TooLarge."""
        packed = pack(message, most)
        self._answers.write(packed)
        self._answers.flush()
        return len(packed)

    @contextmanager
    def _converting(self, line: int | None) -> Generator[None]:
        """End this process if what is done inside takes longer than is left, whatever holds the interpreter's lock.

        `line` is where the script is. The gateway is told before, since nothing can be said after.
        """
        self._printed.flush()
        if line is not None and line != self._at.line:
            self._at.set(line)
            self._send({"at": line})
        began = monotonic()
        faulthandler.dump_traceback_later(max(0.01, self._left_to_convert), exit=True, file=self._nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
        self._left_to_convert -= monotonic() - began


def _returned(value: Any) -> "ExternalSettledResult":
    return {"return_value": _wrapped(value)}


def _raised(kind: str, words: str) -> "ExternalSettledResult":
    return {"exc_type": kind, "message": words}  # pyright: ignore[reportReturnType] - one of three


def _wrapped(value: Any) -> Any:
    """Return a value with its media as objects that Monty takes: their attributes, and nothing else of ours."""
    from pydantic_monty import ClassInstance

    if isinstance(value, Media):
        return ClassInstance(value, eager_attrs="all")
    if isinstance(value, list):
        return [_wrapped(each) for each in value]  # pyright: ignore[reportUnknownVariableType] - the gateway's own
    return value


def _stand_in() -> None:
    """Tells Monty that a name is a function: the calls are answered above."""


def _limit_memory(memory: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    for name, limit in (("RLIMIT_AS", memory), ("RLIMIT_CORE", 0)):
        with suppress(AttributeError, ValueError, OSError):  # macOS refuses some
            resource.setrlimit(getattr(resource, name), (limit, limit))


if __name__ == "__main__":
    main()
