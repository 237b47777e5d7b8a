"""Shell completion of values, in addition to that of commands and options.

Modules are imported only when a shell asks, so that commands do not start more slowly.
"""

from collections.abc import Iterable


def profile_names(incomplete: str) -> list[str]:
    """The built-in profiles that begin like this. The user's own are in a configuration that is unknown here."""
    from gateway.config.builtin_profiles import builtin_profiles

    return beginning(incomplete, builtin_profiles())


def simulated_hosts(incomplete: str) -> list[str]:
    """The simulated hosts that begin like this."""
    from gateway.hosts.simulators.hosts import SIMULATORS

    return beginning(incomplete, SIMULATORS)


def host_names(incomplete: str) -> list[str]:
    """The hosts with known configuration files that begin like this."""
    from gateway.hosts.config_files.hosts import HOSTS

    return beginning(incomplete, HOSTS)


def beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """Those of the names that begin like this."""
    return [name for name in names if name.casefold().startswith(incomplete.casefold())]
