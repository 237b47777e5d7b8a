"""Which addresses may be connected to: those on the public internet, as far as an address can tell."""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence

import anyio

from gateway.errors import FetchFailed, FetchRefused

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host and a port, the best first. Raises OSError."""

_OUTSIDE = tuple(
    ipaddress.ip_network(network)
    for network in (
        "::/96",  # IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "64:ff9b::/96",  # NAT64: what stands in its last four bytes may be anything
        "64:ff9b:1::/48",
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "fec0::/10",  # site-local, once
        "100.64.0.0/10",  # carrier-grade NAT
        "192.88.99.0/24",  # 6to4 relays
    )
)
"""Refused beside what Python's `ipaddress` knows not to be global: older versions of it miss some."""


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet. False for what is not an address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if not ip.is_global or ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_loopback or ip.is_link_local:
        return False
    return not any(ip.version == network.version and ip in network for network in _OUTSIDE)


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """The addresses as the system knows them."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


async def addresses_of(host: str, port: int, resolve: Resolve, *, private: bool, seconds: float) -> Sequence[str]:
    """The addresses to connect to, looked up once; every one of them may be used, or none is.

    Raises:
        FetchRefused: one of them is not public, and `private` ones are not allowed for this host.
        FetchFailed: there is none, or none was found within so many seconds.
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
