"""The TCP ports on which a process listens, as the system tells."""

import psutil


def listening_ports(pid: int | None = None) -> frozenset[int]:
    """Return the ports of a process of this user, by default of this one; none if the system does not tell."""
    try:
        found = psutil.Process(pid).net_connections("tcp")
    except (psutil.Error, OSError):
        return frozenset()
    return frozenset(one.laddr.port for one in found if one.status == psutil.CONN_LISTEN and one.laddr)
