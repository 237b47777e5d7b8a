"""`mcp-gateway stop`: shut down a running gateway, with everything that it started."""

import time

from gateway.cli.exit_codes import DONE, FAILED, complain
from gateway.cli.running_gateways import All, Name, Pid, chosen
from gateway.cli.terminal import say
from gateway.errors import GatewayError
from gateway.serving.control.client import ask
from gateway.serving.control.records import GatewayRecord

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


def stop(pid: Pid = None, name: Name = None, everyone: All = False) -> int:
    """Stop a running gateway, and wait until it and its upstreams have ended. A host may start it again."""
    code = DONE
    for record in chosen(pid, name, everyone):
        try:
            ask(record, "stop")
        except GatewayError as error:
            complain(str(error))
            code = FAILED
            continue
        if _ended(record):
            say(f"stopped {record.name}, process {record.pid}")
        else:
            complain(f"process {record.pid} has not ended within {_PATIENCE_SECONDS:g} s", remedy=f"kill {record.pid}")
            code = FAILED
    return code


def _ended(record: GatewayRecord) -> bool:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        if not _is_there(record):
            return True
        time.sleep(_PAUSE_SECONDS)
    return False


def _is_there(record: GatewayRecord) -> bool:
    import psutil

    try:  # a zombie has ended, but was not yet reaped by its parent
        return psutil.Process(record.pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
