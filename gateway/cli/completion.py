"""Values that a shell may complete, beside the commands and options that it is told of anyway.

Everything is imported when a shell asks, so that no command pays for it.
"""

from collections.abc import Iterable


def profile_names(incomplete: str) -> list[str]:
    """The built-in profiles that begin so; one's own are in a configuration that is not known here."""
    from gateway.config.builtin_profiles import builtin_profiles

    return _beginning(incomplete, builtin_profiles())


def simulated_hosts(incomplete: str) -> list[str]:
    """The simulated hosts that begin so."""
    from gateway.hosts.simulators.hosts import SIMULATORS

    return _beginning(incomplete, SIMULATORS)


def host_names(incomplete: str) -> list[str]:
    """The hosts that begin so and whose configuration files are known."""
    from gateway.hosts.config_files.hosts import HOSTS

    return _beginning(incomplete, HOSTS)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete.casefold())]
