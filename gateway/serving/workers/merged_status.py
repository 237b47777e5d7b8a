"""The status of several workers as that of one gateway."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway._version import __version__
from gateway.config.moments import moment_text
from gateway.core.model.json_values import as_list, as_object, objects_in
from gateway.serving.control.status_report import Serving
from gateway.serving.workers.supervisor import WorkerProcess
from gateway.system.process_usage import own_memory

Answers = Sequence[tuple[WorkerProcess, dict[str, Any] | None, str | None]]
"""Workers, each with its status, or with the reason why it has none."""

_ADDED = ("sessions", "restarts")
_UNKNOWN: Mapping[str, Any] = {"problem": None, "restart_needed": []}


def merged_status(pid: int, name: str, serving: Serving, answers: Answers) -> dict[str, Any]:
    """Return the report: of what all workers have, that of the first; of what each has, all of it, or the sum."""
    reports = [report for _, report, _ in answers if report is not None]
    first: Mapping[str, Any] = reports[0] if reports else {}
    memory = [own_memory() or 0, *(report.get("memory_bytes") or 0 for report in reports)]
    return {
        **first,
        "pid": pid,
        "name": name,
        "version": __version__,
        "started": moment_text(serving.started),
        "config": str(serving.config) if serving.config else None,
        "log": str(serving.log) if serving.log else None,
        "transports": list(serving.transports),
        "principal": serving.principal,
        "memory_bytes": sum(memory),
        "configuration": first.get("configuration") or {"read": moment_text(serving.started), **_UNKNOWN},
        "requests": _requests(reports),
        "store": first.get("store") or {"url": "-", "bytes": 0, "pieces": 0, "max_bytes": 0},
        "hosts": [host for report in reports for host in objects_in(as_list(report.get("hosts")))],
        "attached": None,
        "replicas": None,
        "workers": [_worker(worker, report, why) for worker, report, why in answers],
        "approvals": sum(report.get("approvals") or 0 for report in reports),
        "upstreams": _upstreams(reports),
    }


def _worker(worker: WorkerProcess, report: Mapping[str, Any] | None, why: str | None) -> dict[str, Any]:
    report = report or {}
    return {
        "number": worker.number,
        "pid": worker.process.pid,
        "state": worker.state,
        "started": moment_text(worker.started),
        "problem": why,
        "memory_bytes": report.get("memory_bytes"),
        "running": as_object(report.get("requests")).get("running", 0),
        "hosts": len(as_list(report.get("hosts"))),
    }


def _requests(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = [as_object(report.get("requests")) for report in reports]
    refused: dict[str, int] = {}
    for one in found:
        for reason, count in as_object(one.get("refused")).items():
            refused[reason] = refused.get(reason, 0) + int(count)
    added = {key: sum(int(one.get(key) or 0) for one in found) for key in ("running", "waiting", "places")}
    return {**added, "refused": refused}


def _upstreams(reports: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each upstream once: its calls of all workers, and the state of the one where it is worst."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for report in reports:
        for one in objects_in(as_list(report.get("upstreams"))):
            by_name.setdefault(str(one.get("name")), []).append(dict(one))
    return [_upstream(found) for found in by_name.values()]


def _upstream(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    worst = max(found, key=lambda one: (one.get("cause") is not None, one.get("state") == "failed"))
    calls = [as_object(one.get("calls")) for one in found]
    added = {key: sum(int(one.get(key) or 0) for one in found) for key in _ADDED}
    return {
        **worst,
        **added,
        "calls": {key: sum(int(one.get(key) or 0) for one in calls) for key in ("total", "failed", "running")},
        "pid": None,
        "memory_bytes": sum(one.get("memory_bytes") or 0 for one in found) or None,
    }
