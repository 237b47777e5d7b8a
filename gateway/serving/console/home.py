"""The first page of the console: upstreams, hosts, and what has been asked for lately."""

import time
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any

from starlette.requests import Request

from gateway.config.moments import moment_text
from gateway.serving.console.calls import call_row, newest
from gateway.serving.console.console import Console
from gateway.serving.console.views import View
from gateway.telemetry.call_history import CallHistory

_MINUTES = 60
_LATEST = 6
_DAY = 86_400


async def show_home(console: Console) -> dict[str, Any]:
    """Return the status of the gateway (`mcp-gateway status --json`), with what happened lately.

    `activity` has the calls of the last hour: `calls`, `failed`, and both for each minute, the oldest first. `latest`
    are calls, the newest first, and `newest` is the number of the first of them, 0 without any. `today` has the kept
    calls since midnight (UTC): `calls`, `failed`, and the `tokens` that their text (estimated) and pictures cost.
    `recorded_since` is the time since which calls are recorded, if that is less than an hour ago: those before are not
    counted.
    """
    started = console.history.started
    return {
        **await console.report(),
        "activity": activity(console.history, time.time()),
        "today": today(console.history, time.time()),
        "recorded_since": moment_text(started) if time.time() - started < 60 * _MINUTES else None,
        "latest": [call_row(call) for call in islice(console.history.newest_first(), _LATEST)],
        "newest": newest(console.history),
    }


def activity(history: CallHistory, now: float) -> dict[str, Any]:
    """Return what happened in the hour before `now`, in seconds since 1970."""
    calls: Counter[int] = Counter()
    failed: Counter[int] = Counter()
    for call in history.newest_first():
        minute = int((now - call.began) // 60)
        if minute >= _MINUTES:
            break
        calls[minute] += 1
        failed[minute] += not call.is_running and call.record.outcome != "ok"
    minutes = range(_MINUTES - 1, -1, -1)
    return {
        "calls": calls.total(),
        "failed": failed.total(),
        "by_minute": [calls[minute] for minute in minutes],
        "failed_by_minute": [failed[minute] for minute in minutes],
    }


def today(history: CallHistory, now: float) -> dict[str, int]:
    """Return what the calls of the day of `now` were and cost, in seconds since 1970."""
    since = now - now % _DAY
    found = {"calls": 0, "failed": 0, "tokens": 0}
    for call in history.newest_first():
        if call.began < since:
            break
        found["calls"] += 1
        found["failed"] += not call.is_running and call.record.outcome != "ok"
        if (tokens := call.record.tokens) is not None:
            found["tokens"] += tokens.total
    return found


async def _home(console: Console, _: Request) -> Mapping[str, Any]:
    return await show_home(console)


VIEWS = (View("/", "home.html", _home, "home", "Home"),)
