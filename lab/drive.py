"""Runs one program of examples/agents for several prompts: `python drive.py PROGRAM SECONDS`, prompts as JSON on stdin.

This runs in the framework's own environment, so it needs nothing but the standard library. Imports take most of the
time of an agent, so one process answers all prompts, one after the other. On stdout is a line of JSON for each prompt:
its name, and what the program raised if it failed.
"""

import asyncio
import importlib.util
import inspect
import json
import os
import sys
import traceback
from typing import Any, cast


async def main(path: str, seconds: float) -> None:
    """Answer every prompt."""
    prompts = json.load(sys.stdin)
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what programs print is not ours
    program = load(path)
    for name, prompt in prompts.items():
        vars(program)["PROMPT"] = prompt
        print(json.dumps({"name": name, "failed": await failure(program, seconds)}), file=report, flush=True)
    report.close()
    sys.stderr.flush()
    os._exit(0)  # a program that hangs in a thread must not keep this one


def load(path: str) -> Any:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["program"] = module
    spec.loader.exec_module(module)
    return module


async def failure(program: Any, seconds: float) -> str | None:
    """What the program's `main` raised; None where it ended well."""
    is_async = inspect.iscoroutinefunction(program.main)
    # A task of its own: what a program cancels is its own.
    task = asyncio.create_task(program.main() if is_async else asyncio.to_thread(program.main))
    done, _ = await asyncio.wait([task], timeout=seconds)
    if not done:
        task.cancel()
        return "it did not end"
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None or isinstance(error, AssertionError):
        return None
    return "".join(traceback.format_exception_only(innermost(error)))[-4_000:]


def innermost(error: BaseException) -> BaseException:
    """The first error inside groups of them."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
