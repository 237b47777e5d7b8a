"""The examination: a list of checks on one configuration. Another check is one more entry in the list.

A check is an async function from the `CheckContext` to its findings. It takes what it needs from there, starts and ends
what it needs beside, and never raises for what it finds.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from gateway.cli.diagnosis.check_context import CheckContext, Shown, ignore_progress
from gateway.cli.diagnosis.configuration import examine_configuration
from gateway.cli.diagnosis.environment import check_environment
from gateway.cli.diagnosis.findings import CheckResult, Diagnosis
from gateway.cli.diagnosis.media_and_store import check_media, try_store
from gateway.cli.diagnosis.ports import check_port
from gateway.cli.diagnosis.registration import check_registration
from gateway.cli.diagnosis.upstreams import check_upstreams

Check: TypeAlias = Callable[[CheckContext], Awaitable[Iterable[CheckResult]]]

CHECKS: tuple[Check, ...] = (
    check_environment,
    check_upstreams,
    check_registration,
    check_port,
    try_store,
    check_media,
)
"""What is examined beside the configuration, in this order."""


async def diagnose(
    config: Path | None,
    environ: Mapping[str, str],
    *,
    host: str | None = None,
    checks: Sequence[Check] = CHECKS,
    shown: Shown = ignore_progress,
) -> Diagnosis:
    """Examine the configuration (`config`, else the one that is found) and all that it needs to run.

    `host` is the name of the one profile or host that what is said of hosts is limited to, or `EVERY_HOST`; without
    it, that is said of the hosts that this machine has. `shown` is open while upstreams are waited for. A configuration
    that cannot be used does not end the examination: whatever does not depend on it is examined all the same.

    Raises:
        ProfileError: there is no such host.
    """
    patient, findings = examine_configuration(config, environ, host)
    patient = replace(patient, shown=shown)
    usable = not any(finding.level == "problem" for finding in findings)
    for check in checks:
        findings.extend(await check(patient))
    return Diagnosis(tuple(findings), usable)
