"""Exit codes, and errors printed as one line each (problems of the configuration as one line per problem).

0    done 1    the requested action failed: the tool reports an error, the demo misses a picture 2    the command line
or the configuration is invalid 3    an upstream is not available 130  interrupted 141  nobody reads the output any more
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, cast

import typer

from gateway.cli.terminal import neutral, remark, write_out
from gateway.errors import (
    ConfigError,
    GatewayError,
    InvalidRequest,
    PortInUse,
    ProfileError,
    UpstreamError,
    UpstreamRefused,
)
from gateway.telemetry.wrap_lines import wrapped

DONE = 0
FAILED = 1
UNUSABLE = 2
UNAVAILABLE = 3
INTERRUPTED = 130
UNREAD = 141
"""As a shell reports a program that SIGPIPE has ended."""
TERMINATED = 143

CODES: tuple[tuple[type[GatewayError], int], ...] = (
    (ConfigError, UNUSABLE),
    (ProfileError, UNUSABLE),
    (InvalidRequest, UNUSABLE),
    (UpstreamRefused, FAILED),
    (UpstreamError, UNAVAILABLE),
    (GatewayError, FAILED),
)
"""Exit codes by class of error; the first class that matches counts."""


def exit_code(error: GatewayError) -> int:
    """Return the exit code for an error."""
    return next(code for kind, code in CODES if isinstance(error, kind))


def ending(command: Callable[[], object], *, debug: bool) -> int:
    """Run `command`, print its error, if any, and return the exit code. With `debug`, errors are raised."""
    try:
        code = _ended(command, debug=debug)
    except BrokenPipeError:  # nobody reads errors, either
        code = UNREAD
    code = _written(code)
    if code == INTERRUPTED and sys.stderr.isatty():
        remark("interrupted")  # or the shell's prompt would follow the terminal's ^C in the same line
    return code


def _ended(command: Callable[[], object], *, debug: bool) -> int:
    try:
        code = command()
    except typer.TyperException as error:
        complain(error.format_message(), remedy=_usage_remedy(error))
        return UNUSABLE
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # the outermost handler: unexpected errors must be one line, too
        if isinstance(sole(error), BrokenPipeError):
            return UNREAD
        if debug:
            raise
        return _say(error)
    except SystemExit as left:  # Typer's own way to end when nobody reads
        if isinstance(left.__context__, BrokenPipeError):
            return UNREAD
        raise
    except BaseExceptionGroup as group:
        # A second Ctrl-C, while task groups still wait after the first, also needs no message.
        if debug or group.subgroup(KeyboardInterrupt) is None:
            raise
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


def _usage_remedy(error: typer.TyperException) -> str:
    """Return what to do about an error in the command line."""
    context = getattr(error, "ctx", None)
    if context is not None and context.info_name == "call" and "extra argument" in error.format_message():
        return """the arguments are one JSON object: '{"path": "a.png", "page": 2}'"""
    if getattr(error, "option_name", None) is not None and context is not None and context.parent is None:
        return "options go after the command: mcp-gateway COMMAND --config FILE; --help lists the commands"
    return "--help shows how it is used"


def complain(message: str, *, remedy: str | None = None) -> None:
    """Print each line of the message as one line on stderr, after what has been printed on stdout."""
    write_out()
    for line in neutral(message).splitlines() or [""]:
        text = f"error: {line}" + (f" ({remedy})" if remedy else "")
        print(wrapped(text, sys.stderr), file=sys.stderr)


def refuse(message: str) -> NoReturn:
    """Exit because of an error in the command line."""
    raise typer.BadParameter(message)


def refuse_to_guess(message: str) -> NoReturn:
    """Exit because somebody would have to be asked, and there is no terminal: nothing given is wrong."""
    raise typer.TyperException(f"nobody can be asked here{message}")


def _say(error: Exception) -> int:
    known = sole(error)
    if isinstance(known, PortInUse):
        from gateway.cli.port_holder import naming_holder

        known = naming_holder(known)
    if isinstance(known, GatewayError):
        complain(str(known))
        return exit_code(known)
    complain(f"{type(known).__name__}: {known}", remedy="an internal error of the gateway; --debug shows where")
    return FAILED


def sole(error: Exception) -> Exception:
    """Return the error itself, or the only one that a task group wrapped."""
    while isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        if len(group.exceptions) != 1:
            return group
        error = group.exceptions[0]
    return error


def _written(code: int) -> int:
    """Write what is still buffered, and return the exit code: another one if nobody reads the output any more.

    What is left is dropped. Python would try once more when it ends, and print that this failed.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # it was closed before the start
            continue
        try:
            stream.flush()
        except BrokenPipeError:
            with suppress(OSError, ValueError):  # a stream without a file
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            code = UNREAD
    return code
