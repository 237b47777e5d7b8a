"""`mcp-gateway stop`: shut down a running gateway, with everything that it started."""

import time

from gateway.cli.exit_codes import DONE, FAILED, complain
from gateway.cli.running_gateways import All, Name, Pid, chosen
from gateway.cli.terminal import remark, say
from gateway.errors import GatewayError
from gateway.serving.control.client import ask
from gateway.serving.control.records import GatewayRecord

_PATIENCE_SECONDS = 30.0
_SOON_SECONDS = 2.0
_PAUSE_SECONDS = 0.05


def stop(pid: Pid = None, name: Name = None, everyone: All = False) -> int:
    """Stop a running gateway, and wait until it and its upstreams have ended. A host may start it again.

    One that serves over HTTP answers running requests first, for at most [http] drain_grace; told again, it ends at
    once.
    """
    code = DONE
    for record in chosen(pid, name, everyone):
        try:
            answer = ask(record, "stop")
        except GatewayError as error:
            complain(str(error))
            code = FAILED
            continue
        grace = float(answer.get("grace") or 0)  # missing in the answer of an older gateway
        patience = _PATIENCE_SECONDS + grace
        if grace and not _ended(record, _SOON_SECONDS):
            remark(f"process {record.pid} answers what it has been asked, for at most {grace:g} s")
        if _ended(record, patience):
            say(f"stopped {record.name}, process {record.pid}")
        else:
            complain(f"process {record.pid} has not ended within {patience:g} s", remedy=f"kill {record.pid}")
            code = FAILED
    return code


def _ended(record: GatewayRecord, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while _is_there(record):
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def _is_there(record: GatewayRecord) -> bool:
    import psutil

    try:  # a zombie has ended, but was not yet reaped by its parent
        return psutil.Process(record.pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
