"""Recognising addresses of this machine. Standard library only."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_this_machine(host: str) -> bool:
    """Whether a url's host is this machine, as far as it shows.

    Every name below `localhost` is, for any client (RFC 6761, 6.3), but that does not mean that an address can be
    bound.
    """
    return is_loopback(host) or host.lower().endswith(".localhost")
