"""Why a script failed, in words for the model."""

from typing import TYPE_CHECKING

from gateway.core.fact_words import counted, plain, size_words
from gateway.sandbox.faults import ScriptFailed
from gateway.sandbox.last_call import LastCall
from gateway.sandbox.messages import ScriptLimits

if TYPE_CHECKING:
    from pydantic_monty import MontyError

_LONGEST = 2_000
_SHOWN_LINE = 200


def failed(error: "MontyError", limits: ScriptLimits, at: LastCall, *, is_too_much_printed: bool) -> ScriptFailed:
    """Return why a script failed, by what the interpreter says; `at` is the last call, in case it says no line."""
    from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError

    if isinstance(error, MontyCrashedError):
        return ScriptFailed(
            f"it was ended: it ran longer than {limits.run_time:g} s, or took more than {size_words(limits.memory)}"
            + at.words()
        )
    if not isinstance(error, MontyRuntimeError | MontySyntaxError):
        return ScriptFailed(plain(str(error), _LONGEST))
    frames = error.traceback()
    own = next((frame for frame in reversed(frames) if frame.source_line), None)
    words = _too_much_printed(limits) if is_too_much_printed else _reason(error.display("type-msg"), limits)
    if own is None:  # such as at a limit that it reaches at the top level
        return ScriptFailed(words + at.words())
    return ScriptFailed(words, own.line, plain((own.source_line or "").strip(), _SHOWN_LINE))


def _too_much_printed(limits: ScriptLimits) -> str:
    return f"it printed more than {size_words(limits.max_text)}"


def _reason(said: str, limits: ScriptLimits) -> str:
    if said.startswith("TimeoutError: feed time limit"):
        return f"it ran longer than {limits.run_time:g} s, without the calls that it waited for"
    if said.startswith("MemoryError"):
        return f"it took more than {size_words(limits.memory)} of memory"
    if said.startswith("RuntimeError: suspension limit"):
        return f"it called functions too often; {counted(limits.max_calls, 'tool call')} are allowed"
    if "'coroutine' object" in said:
        return f"{plain(said, _LONGEST)}; a script that uses await has to await each call of a tool"
    return plain(said, _LONGEST)
