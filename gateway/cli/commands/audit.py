"""`mcp-gateway audit`: verify the audit trail, and show its lines."""

import json
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.exit_codes import DONE, FAILED, complain
from gateway.cli.terminal import help_without_command, remark, say, say_json
from gateway.config.load_settings import load_settings
from gateway.core.fact_words import counted, plain, size_words
from gateway.core.model.json_values import as_list, as_object
from gateway.errors import ConfigError
from gateway.telemetry.audit.chain import chains_at, read_head
from gateway.telemetry.audit.verify import Verification, records_of, verify_chain

app = typer.Typer(name="audit", help="Verify and show the audit trail.", invoke_without_command=True)

_LOOK_SECONDS = 0.5
_SHORT = 12
"""Characters of a hash that are shown."""
_IN_WORDS = ("cause", "changes", "problem", "address", "why", "client", "goes_to", "by")
"""What is shown with its name."""
_BY = {
    "console": "somebody at the console",
    "host": "the host's user",
    "program": "the program's user",
    "terminal": "somebody in a terminal",
    "tool": "the model, with gateway_approve",
}
"""Who gave an approval, in words."""

File = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="The file. Default: [audit] path of the configuration.")
]


@app.callback()
def common(context: typer.Context) -> None:
    """Who asked for what, what was decided, and what the model was shown: lines chained by hashes."""
    help_without_command(context)


@app.command("verify")
def verify(file: File = None, config: ConfigFile = None, as_json: AsJson = False) -> int:
    """Find lines that were changed, removed, inserted or cut off.

    Without --file, the files of all gateways that wrote to the configured path are verified.
    """
    found = {path: _verified(path) for path in _chains(file, config)}
    if as_json:
        say_json({"chains": [_as_json(path, one) for path, one in found.items()]})
    for path, one in found.items():
        for broken in one.breaks:
            complain(str(broken))
        if not as_json:
            for line in one.remarks:
                remark(line)
            state = f"broken in {counted(len(one.breaks), 'place')}" if one.breaks else "whole"
            say(f"{path}: {state}, {counted(one.lines, 'line')} in {counted(one.files, 'file')}, {_last(one)}")
    return FAILED if any(one.breaks for one in found.values()) else DONE


@app.command("show")
def show(
    file: File = None,
    config: ConfigFile = None,
    number: Annotated[int, typer.Option("--lines", "-n", min=1, help="Number of lines.")] = 20,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Only this principal's.")] = None,
    as_json: AsJson = False,
) -> int:
    """Show the last lines, in words."""
    for path in _chains(file, config):
        wanted = (one for one in _records(path) if principal is None or one.get("principal") == principal)
        for record in deque(wanted, number):
            _say(record, as_json)
    return DONE


@app.command("tail")
def tail(
    file: File = None,
    config: ConfigFile = None,
    number: Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of earlier lines.")] = 10,
    as_json: AsJson = False,
) -> int:
    """Show the last lines, and go on with new ones as they are written."""
    chains = _chains(file, config)
    seen = dict.fromkeys(chains, 0)
    for path in chains:
        last = deque(_records(path), max(1, number))
        seen[path] = _sequence(last[-1]) if last else 0
        for record in last if number else ():
            _say(record, as_json)
    while True:
        time.sleep(_LOOK_SECONDS)
        for path in (one for one in chains if _end(one) > seen[one]):
            for record in _records(path):
                if _sequence(record) > seen[path]:
                    seen[path] = _sequence(record)
                    _say(record, as_json)


def _chains(file: Path | None, config: Path | None) -> list[Path]:
    if file is not None:
        if not chains_at(file):
            raise ConfigError("there is no audit trail", where=str(file))
        return [file]
    path = load_settings(config).settings.audit.path
    if path is None:
        raise ConfigError("no audit trail is configured", where="audit.path", remedy="set it, or name a --file")
    if not (found := chains_at(path)):
        raise ConfigError("nothing has been written yet", where=str(path))
    return found


def _verified(path: Path) -> Verification:
    try:
        return verify_chain(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        yield from records_of(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _end(path: Path) -> int:
    """Return the number of the last line, by the head file."""
    try:
        head = read_head(path)
    except (OSError, ValueError):
        return 0
    return 0 if head is None else head.last.sequence


def _unreadable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot be read: {error.strerror or error}", where=str(path))


def _last(found: Verification) -> str:
    return f"last line {found.last.sequence}, sha256 {found.last.sha256}" if found.last.sequence else "no line"


def _as_json(path: Path, found: Verification) -> dict[str, Any]:
    return {
        "file": str(path),
        "whole": not found.breaks,
        "lines": found.lines,
        "files": found.files,
        "last": found.last._asdict(),
        "breaks": [{"file": str(one.file), "line": one.line, "what": one.what} for one in found.breaks],
        "remarks": found.remarks,
    }


def _sequence(record: Mapping[str, Any]) -> int:
    sequence = record.get("sequence")
    return sequence if isinstance(sequence, int) else 0


def _say(record: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        say(json.dumps(record))
        return
    say(plain(f"{record.get('time', '-')} {_sequence(record)} {_in_words(record)}", 2_000))


def _in_words(record: Mapping[str, Any]) -> str:
    host = as_object(record.get("host"))
    who = record.get("principal")
    whose = f"{who}{f' ({host_name})' if (host_name := host.get('name')) else ''}" if who else None
    target = "__".join(str(part) for key in ("upstream", "tool", "prompt") if (part := record.get(key)))
    facts = [
        whose,
        " ".join(str(part) for part in (record.get("event"), target, record.get("resource")) if part),
        _decided(record),
        record.get("outcome"),
        f"{seconds} s" if (seconds := record.get("seconds")) is not None else None,
        f"arguments {digest[:_SHORT]}" if isinstance(digest := record.get("arguments_sha256"), str) else None,
        _shown(record),
        *(f"{key} {record[key]}" for key in _IN_WORDS if record.get(key) and not (key == "by" and "verdict" in record)),
    ]
    return ", ".join(str(fact) for fact in facts if fact)


def _decided(record: Mapping[str, Any]) -> str | None:
    """Return the decision of a rule about a request, or of a person about a call that a rule let wait."""
    decision, verdict, rule = (record.get(key) for key in ("decision", "verdict", "rule"))
    if verdict:
        by = record.get("by")
        asked = f"asked because of {rule}" if rule else ""
        return ", ".join(filter(None, (f"{verdict} by {_BY.get(str(by), by)}" if by else str(verdict), asked)))
    if decision is None:
        return None
    return f"{decision} by {rule}" if rule else decision if decision != "allow" else None


def _shown(record: Mapping[str, Any]) -> str | None:
    parts = [as_object(part) for part in as_list(record.get("shown"))]
    if not parts:
        return None
    named = [
        f"{part.get('media_type') or part.get('type')} {size_words(int(part.get('bytes') or 0))}"
        f" {str(part.get('sha256'))[:_SHORT]}"
        for part in parts[:3]
    ]
    more = f" and {len(parts) - 3} more" if len(parts) > 3 else ""
    return f"shown {'; '.join(named)}{more}"
