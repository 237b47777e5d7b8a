"""Which addresses lead back to this machine. Standard library only."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_this_machine(host: str) -> bool:
    """Whether a url's host leads back to this machine, as far as can be seen.

    Every name below `localhost` does for whoever asks (RFC 6761, 6.3), but nothing can be bound to it on that ground.
    """
    return is_loopback(host) or host.lower().endswith(".localhost")
