"""Entry point of the command. Uses the standard library only until a host on stdio is being answered.

A host that starts `mcp-gateway serve` waits for its first answer while everything else is still being imported, and
some time out after a second. So this parses the arguments by hand, just far enough to recognise such a start.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.serving.mcp.early_stdio import EarlyStdio
    from gateway.serving.shared.relay_options import RelayOptions


RESIDENT = "--resident"
"""The option of `serve` for the process of a shared gateway."""

_COLLECT = (50_000, 20, 20)
"""Thresholds of the garbage collector: much higher than the default (700, 10, 10).

A full collection stops everything, and a result with millions of values triggers many: parsing
8 MB of empty lists takes 0.1 s with this and 1.0 s without (measured, CPython 3.11). So do the
imports of a start, a tenth of which would be collections that find nothing.
"""

_RELAYED = ("--config", "--profile", "--model", "--toolset")
"""The options that go with `--shared`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code (see `gateway.cli.exit_codes`)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # A KeyboardInterrupt is lost in some places inside of Python's imports, and the command would go on.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_now)
    opening = _open_stdio(given) if starts_stdio(given) else None
    if opening is not None and (code := _relayed(opening, given)) is not None:
        return code
    gc.set_threshold(*_COLLECT)
    from gateway.cli.lean_packages import hold_back

    hold_back()
    from gateway.cli.app import run

    code = run(given, opening, loaded=_loaded)
    if RESIDENT in given:
        from gateway.serving.shared.start_gateway import say_ended

        say_ended(code)
    return code


def _end_now(_number: int, _frame: FrameType | None) -> None:
    """End at once, which is safe while modules are imported, and for a relay: nothing has been started or written."""
    if sys.stderr is not None and sys.stderr.isatty():
        os.write(sys.stderr.fileno(), b"interrupted\n")
    os._exit(130)


def _loaded() -> None:
    """Have Ctrl-C raise KeyboardInterrupt from now on, so that the command can clean up."""
    if signal.getsignal(signal.SIGINT) is _end_now:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def starts_stdio(arguments: Sequence[str]) -> bool:
    """Whether the arguments start the gateway on stdio: `serve` without `--http`, `--resident` or `--help`."""
    words = [word for word in _options(arguments) if word != "--debug"]
    return words[:1] == ["serve"] and not {"--http", RESIDENT, "--help", "-h"} & set(words)


def relay_options(arguments: Sequence[str]) -> "RelayOptions | None":
    """Return the options of `serve --shared`; None if there are others, which `serve` itself judges."""
    words = list(arguments)
    if words[:1] != ["serve"] or words.count("--shared") != 1:
        return None
    words.remove("--shared")
    given: dict[str, str] = {}
    rest = iter(words[1:])
    for word in rest:
        name, has_value, value = word.partition("=")
        value = value if has_value else next(rest, "")
        if name not in _RELAYED or name in given or not value or value.startswith("-"):
            return None
        given[name] = value
    from gateway.serving.shared.relay_options import RelayOptions

    config = Path(given["--config"]) if "--config" in given else None
    return RelayOptions(config, given.get("--profile"), given.get("--model"), given.get("--toolset"))


def _relayed(opening: "EarlyStdio", arguments: Sequence[str]) -> int | None:
    """Relay for a host with `serve --shared`, and return the exit code; None if nothing can be shared.

    A terminal gets the explanation of `serve` first.
    """
    if opening.is_by_hand or (options := relay_options(arguments)) is None:
        return None
    from gateway.serving.shared.relay import relay

    return relay(opening, options)


def _options(arguments: Sequence[str]) -> list[str]:
    """The arguments before `--`; those after it are an upstream's command."""
    given = list(arguments)
    return given[: given.index("--")] if "--" in given else given


def _value_of(option: str, arguments: Sequence[str]) -> str | None:
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return None


def _open_stdio(arguments: Sequence[str]) -> "EarlyStdio":
    from gateway._version import __version__
    from gateway.config.early_config import Greeting, read_greeting, toolsets_of_host
    from gateway.config.list_facts import read_list_facts
    from gateway.serving.mcp.early_lists import EarlyLists
    from gateway.serving.mcp.early_stdio import EarlyStdio
    from gateway.serving.mcp.handshake import Identity
    from gateway.serving.mcp.kept_lists import KeptLists

    options = _options(arguments)
    without_file = any(word.split("=")[0] in ("--upstream", "--") for word in arguments)
    config = _value_of("--config", options)
    greeting, lists = Greeting(), None
    if not without_file:
        path = None if config is None else Path(config)
        toolsets = toolsets_of_host(path, os.environ, _value_of("--toolset", options))
        greeting = read_greeting(path, os.environ, toolsets)
        if "--calibrate" not in options and (kept := KeptLists.of(os.environ)) is not None:
            facts = read_list_facts(path, os.environ, arguments, toolsets)
            lists = None if facts is None else EarlyLists(kept, facts)
    identity = Identity(greeting.name, __version__, None, greeting.instructions, greeting.others)
    opening = EarlyStdio(identity, lists=lists)
    try:
        opening.start()
    except OSError:
        said = "serve speaks over stdin and stdout, and one of them is closed (have a host start it, or use --http)"
        print(f"error: {said}", file=sys.stderr)
        sys.exit(2)
    return opening
