"""Resolve host names to addresses that may be connected to: as a rule, those on the public internet."""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence

import anyio

from gateway.errors import FetchFailed, FetchRefused

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host and a port to addresses, the best first. Raises OSError."""

_OUTSIDE = tuple(
    ipaddress.ip_network(network)
    for network in (
        "::/96",  # IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "64:ff9b::/96",  # NAT64: the last four bytes may be any IPv4 address
        "64:ff9b:1::/48",
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "fec0::/10",  # formerly site-local
        "100.64.0.0/10",  # carrier-grade NAT
        "192.88.99.0/24",  # 6to4 relays
    )
)
"""Networks refused besides those that `ipaddress` does not consider global: older Python versions miss some."""


def is_public(address: str) -> bool:
    """Whether an address is on the public internet. False for anything that is not an address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if not ip.is_global or ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_loopback or ip.is_link_local:
        return False
    return not any(ip.version == network.version and ip in network for network in _OUTSIDE)


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Resolve a host with the system's resolver."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


async def addresses_of(host: str, port: int, resolve: Resolve, *, private: bool, seconds: float) -> Sequence[str]:
    """Look up the addresses of a host once. All of them have to be permitted.

    Raises:
        FetchRefused: an address is not public, and `private` ones are not allowed for this host.
        FetchFailed: no address was found within `seconds`.
    """
    try:
        with anyio.fail_after(seconds):
            found = await resolve(host, port)
    except TimeoutError:
        raise FetchFailed(f"the name {host} was not resolved within {seconds:g} s") from None
    except (OSError, UnicodeError) as error:
        raise FetchFailed(f"the name {host} cannot be resolved: {error}") from None
    if not found:
        raise FetchFailed(f"the name {host} has no address")
    if not private and not all(is_public(address) for address in found):
        raise FetchRefused(
            f"{host} leads to an address that is not public",
            remedy="if that is meant, name the host in [fetch] allow_private",
        )
    return found
