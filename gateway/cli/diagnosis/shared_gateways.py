"""Check the gateway that hosts share (`serve --shared`): whether they all were started in the same environment."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread

from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.findings import CheckResult
from gateway.core.fact_words import plain
from gateway.errors import GatewayError
from gateway.serving.control.client import ask
from gateway.serving.control.records import GatewayRecord, running

ABOUT = "shared gateway"


async def check_shared(context: CheckContext) -> list[CheckResult]:
    """Check the running gateways that are shared with this configuration."""
    if context.path is None:
        return []
    records = await to_thread.run_sync(_shared_with, context.path)
    return [finding for record in records for finding in await to_thread.run_sync(_checked, record)]


def _shared_with(path: Path) -> list[GatewayRecord]:
    config = os.path.abspath(path)
    return [one for one in running() if one.shared is not None and os.path.abspath(one.config or "") == config]


def _checked(record: GatewayRecord) -> list[CheckResult]:
    try:
        report = ask(record, "status")
    except GatewayError as error:
        return [CheckResult(ABOUT, "warning", str(error), f"mcp-gateway stop --pid {record.pid}")]
    attached = report.get("attached") or ()
    differing = list(_differing(attached))
    text = f"process {record.pid}, attached hosts: {len(attached)}"
    return differing or [CheckResult(ABOUT, "ok", text)]


def _differing(attached: Sequence[Mapping[str, Any]]) -> Iterator[CheckResult]:
    for host in attached:
        if host["environment"]:
            names = plain(", ".join(host["environment"]), 1_000)
            named = plain(host["name"] or "a host", 100)
            text = (
                f"{named} (process {host['pid']}) was started with other values of {names} than the gateway, which hold"
            )
            remedy = "give it a configuration of its own, or take the values from ${file:...} or ${keyring:...}"
            yield CheckResult(ABOUT, "warning", text, remedy)
