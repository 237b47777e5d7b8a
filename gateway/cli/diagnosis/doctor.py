"""The examination by `doctor`: a list of checks on one configuration. A new check is a new entry in `CHECKS`.

A check is an async function from the `CheckContext` to its findings. It starts and ends whatever else it needs, and
reports errors as findings instead of raising them.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from gateway.cli.diagnosis.authorization_state import check_state
from gateway.cli.diagnosis.check_context import CheckContext, Shown, ignore_progress
from gateway.cli.diagnosis.cluster_state import check_cluster
from gateway.cli.diagnosis.configuration import check_project, examine_configuration
from gateway.cli.diagnosis.environment import check_environment
from gateway.cli.diagnosis.findings import CheckResult, Diagnosis
from gateway.cli.diagnosis.media_and_store import check_media, try_store
from gateway.cli.diagnosis.ports import check_port
from gateway.cli.diagnosis.registration import check_registration
from gateway.cli.diagnosis.shared_gateways import check_shared
from gateway.cli.diagnosis.upstreams import check_upstreams

Check: TypeAlias = Callable[[CheckContext], Awaitable[Iterable[CheckResult]]]

CHECKS: tuple[Check, ...] = (
    check_project,
    check_environment,
    check_upstreams,
    check_registration,
    check_shared,
    check_port,
    check_state,
    check_cluster,
    try_store,
    check_media,
)
"""The checks after the one of the configuration itself, in this order."""


async def diagnose(
    config: Path | None,
    environ: Mapping[str, str],
    *,
    host: str | None = None,
    checks: Sequence[Check] = CHECKS,
    shown: Shown = ignore_progress,
) -> Diagnosis:
    """Examine the configuration (`config`, or else the one that is found) and everything that it needs to run.

    `host` is the profile or host that findings on hosts are limited to, or `EVERY_HOST`; by default, the hosts on this
    machine. `shown` is held during the wait for upstreams. An unusable configuration does not end the examination:
    everything that does not depend on it is still examined.

    Raises:
        ProfileError: the host does not exist.
    """
    context, findings = examine_configuration(config, environ, host)
    context = replace(context, shown=shown)
    usable = not any(finding.level == "problem" for finding in findings)
    for check in checks:
        findings.extend(await check(context))
    return Diagnosis(tuple(findings), usable)
