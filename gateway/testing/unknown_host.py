"""What to say of a host that cannot be simulated: the one sentence of `assert_seen` and of `mcp-gateway check`."""

from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.fact_words import plain
from gateway.core.near_names import did_you_mean
from gateway.core.profiles.match_profile import known_name
from gateway.hosts.simulators.hosts import FIRST, SIMULATORS


def not_simulated(name: str) -> str:
    """Explain why a host has no simulator: it is unknown, or it has a profile only."""
    first = [host.name for host in FIRST]
    some = f"simulated are {', '.join(first)} and {len(SIMULATORS) - len(first)} more"
    if (profile := known_name(builtin_profiles(), name)) is not None:
        return (
            f"{profile} has a profile, but no simulator that shows what its model sees; "
            f"`mcp-gateway call TOOL --profile {profile}` shows what it is sent; {some}"
        )
    return f"no simulated host is called {plain(name)!a}; {did_you_mean(name.casefold(), SIMULATORS) or some}"
