"""What commands say about the configuration file that they have edited: who applies it, and whether it can be used."""

import os

from gateway.cli.exit_codes import DONE, UNUSABLE, complain
from gateway.cli.terminal import remark, say
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.serving.control.records import running


def say_who_takes_it_over(file: ConfigurationFile) -> None:
    """Tell the user if a gateway runs with this file: it watches the file, and applies the change."""
    here = os.path.realpath(file.path)
    pids = [str(one.pid) for one in running() if one.config is not None and os.path.realpath(one.config) == here]
    if pids:
        who = f"gateway (process {pids[0]}) takes" if len(pids) == 1 else f"gateways ({', '.join(pids)}) take"
        say(f"the running {who} it over now: no restart is needed")


def warn_if_unusable(file: ConfigurationFile) -> bool:
    """Warn about each error that makes the file in its current state unusable; return whether it is usable."""
    obstacles = file.obstacles()
    for line in obstacles:
        remark(f"warning: the configuration cannot be used yet: {line}")
    return not obstacles


def say_who_refuses(file: ConfigurationFile, removed: str) -> int:
    """Tell the user, after a removal, if a running gateway takes it over; return the exit code.

    `removed` is refused even if the file cannot be used as it is.
    """
    if not warn_if_unusable(file):
        remedy = "mend the configuration; if it cannot even be read, end the gateway: `mcp-gateway stop`"
        complain(f"a running gateway refuses {removed}, but takes over nothing else", remedy=remedy)
        return UNUSABLE
    say_who_takes_it_over(file)
    return DONE
