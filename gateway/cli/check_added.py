"""Starting a server that was just added, and showing what the hosts of this machine will see of it."""

from gateway.cli.command_context import run_until_signal
from gateway.cli.exit_codes import DONE
from gateway.cli.known_upstream import only_upstream
from gateway.cli.terminal import remark, say
from gateway.config.load_settings import load_settings
from gateway.errors import ConfigError
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.registration_status import registration_status


def check_added(name: str, file: ConfigurationFile) -> int:
    """Start a server of the configuration once, call its read-only tools, and print what hosts would see.

    Returns the exit code.

    Raises:
        UpstreamUnavailable: it cannot be started.
    """
    from gateway.cli.diagnosis.checkup import CheckOptions
    from gateway.cli.diagnosis.server_check import check_server
    from gateway.cli.print_checkup import print_checkup
    from gateway.hosts.simulators.hosts import SIMULATORS

    try:
        settings = only_upstream(load_settings(file.path).settings, name)
    except ConfigError:
        return DONE  # the file's problems were said when it was written
    here = Machine.here()
    installed = [host for host in HOSTS.values() if registration_status(host, here).exists]
    hosts = tuple(SIMULATORS[host.name] for host in installed if host.name in SIMULATORS)
    if others := [host.title for host in installed if host.name not in SIMULATORS]:
        remark(f"not simulated, so not shown: {', '.join(others)}")
    whose = f"your hosts ({', '.join(host.title for host in hosts)})" if hosts else "common hosts"
    say(f"what {whose} will see of it:")
    ended = run_until_signal(lambda: check_server(settings, CheckOptions(hosts=hosts), remark))
    if isinstance(ended, int):
        return ended
    print_checkup(ended)
    return DONE
