"""The address at which the other replicas reach this one, if the configuration does not say."""

import socket
from urllib.parse import urlsplit

from gateway.system.loopback import is_loopback

_ANY = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - what is compared with, not listened on
_REDIS_PORT = 6_379


def own_address(bind: str, port: int, redis_url: str, *, tls: bool) -> str:
    """Return the origin: `bind`, or the address of this machine on the way to Redis if that is any."""
    host = _address_towards(redis_url) if bind in _ANY else bind
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def reaches_no_other(address: str) -> bool:
    """Whether only this machine can reach an origin."""
    return is_loopback(urlsplit(address).hostname or "")


def _address_towards(redis_url: str) -> str:
    """Return the address of the interface on the way to Redis. No packet is sent to find it."""
    url = urlsplit(redis_url)
    try:
        found = socket.getaddrinfo(url.hostname, url.port or _REDIS_PORT, type=socket.SOCK_DGRAM)
        family, kind, _, _, address = found[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except (OSError, ValueError):
        return socket.gethostname()
