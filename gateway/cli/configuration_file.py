"""What commands say about the configuration file that they have edited: who applies it, and whether it can be used."""

import os
from pathlib import Path

from gateway.cli.exit_codes import DONE, UNUSABLE, complain
from gateway.cli.terminal import remark, say
from gateway.config.load_settings import load_settings
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.serving.control.records import running


def say_if_taken_over(file: ConfigurationFile) -> bool:
    """Tell the user whether a running gateway with this file applies the change; return whether it is usable.

    A gateway watches its file. One that cannot be used as it is, it does not take over.
    """
    usable = warn_if_unusable(file)
    _say_what_running_ones_do(file, usable=usable)
    return usable


def _say_what_running_ones_do(file: ConfigurationFile, *, usable: bool) -> None:
    here = os.path.realpath(file.path)
    pids = [str(one.pid) for one in running() if one.config is not None and os.path.realpath(one.config) == here]
    if not pids:
        return
    who, one = f"gateways ({', '.join(pids)})" if len(pids) > 1 else f"gateway (process {pids[0]})", len(pids) == 1
    if usable:
        say(f"the running {who} {'takes' if one else 'take'} it over now: no restart is needed")
    else:
        remark(f"the running {who} {'goes' if one else 'go'} on with what was read before")


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
    _say_what_running_ones_do(file, usable=True)
    return DONE


def warn_of_access(path: Path, table: str) -> None:
    """Warn of patterns of a table of `[access]`, such as `tokens.alice`, that match no upstream or no known tool."""
    from gateway.cli.diagnosis.globs import check_table
    from gateway.cli.named_callers import remembered_names

    settings = load_settings(path).settings
    for finding in check_table(table, settings, remembered_names(settings)):
        remark(f"warning: {finding.text} ({finding.remedy})")
