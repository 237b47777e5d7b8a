"""What an address counts as where peers are bounded."""

import ipaddress


def peer_of(address: str) -> str:
    """Return what an address is counted as: an IPv4 address as itself, an IPv6 one as its /64 (`2001:db8::/64`).

    Whoever has one IPv6 address usually has the whole /64 around it, and could use a new address for each connection
    (RFC 4291, 2.5.1; RFC 6177). Whatever is not an address is returned unchanged.
    """
    given = unmapped(address)
    if given is None:
        return address
    if given.version == 4:
        return str(given)
    # By its number, since a link-local address may have a zone (`fe80::1%eth0`), which no network has.
    return str(ipaddress.IPv6Network((int(given) >> 64 << 64, 64)))


def unmapped(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read an address, an IPv4-mapped one (`::ffff:192.0.2.1`) as its IPv4 address; None if it is not one."""
    try:
        given = ipaddress.ip_address(address)
    except ValueError:
        return None
    return given if given.version == 4 else given.ipv4_mapped or given
