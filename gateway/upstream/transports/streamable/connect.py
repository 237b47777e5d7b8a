"""Open a connection: every address of a host, two of them at a time if the first is slow (RFC 8305), and TLS."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Any

import anyio
import httpx2

from gateway.system.tls import ssl_context
from gateway.upstream.transports.streamable.connection import Connection
from gateway.upstream.transports.streamable.requests import Origin

_NEXT_ADDRESS = 0.25
"""Seconds after which the next address is tried besides the one before."""

_Address = tuple[socket.AddressFamily, tuple[Any, ...]]


async def open_connection(origin: Origin, seconds: float, create: Callable[[], Connection]) -> Connection:
    """Connect to an origin. Raises httpx2.ConnectTimeout after `seconds`, and httpx2.ConnectError with its cause.

    A cancelled handshake leaves nothing open: unlike httpcore2 (`gateway.system.tls.HOOKS`), asyncio sees to that.
    """
    try:
        with anyio.fail_after(seconds):
            connected = await _first_socket(await _addresses(origin))
            return await _over(connected, origin, create)
    except TimeoutError as error:
        raise httpx2.ConnectTimeout("no connection in time") from error
    except (OSError, UnicodeError, ExceptionGroup) as error:
        raise httpx2.ConnectError(str(error)) from error


async def _over(connected: socket.socket, origin: Origin, create: Callable[[], Connection]) -> Connection:
    loop = asyncio.get_running_loop()
    try:
        if not origin.is_tls:
            return (await loop.create_connection(create, sock=connected))[1]
        over_tls = loop.create_connection(create, sock=connected, ssl=ssl_context(), server_hostname=origin.host)
        return (await over_tls)[1]
    except BaseException:
        connected.close()
        raise


async def _addresses(origin: Origin) -> list[_Address]:
    """Return the addresses of a host, IPv6 and IPv4 in turns."""
    try:
        family = socket.AF_INET if ipaddress.ip_address(origin.host).version == 4 else socket.AF_INET6
        return [(family, (origin.host, origin.port))]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    addresses: list[_Address] = [(family, address) for family, _, _, _, address in found]
    first = [one for one in addresses if one[0] == addresses[0][0]]
    others = [one for one in addresses if one[0] != addresses[0][0]]
    mixed = [one for pair in zip(first, others, strict=False) for one in pair]
    return mixed + first[len(others) :] + others[len(first) :]


async def _first_socket(addresses: list[_Address]) -> socket.socket:
    """Return the socket that connects first. Raises OSError, or a group of them."""
    if len(addresses) == 1:
        return await _connected(*addresses[0])
    sockets: list[socket.socket] = []
    errors: list[OSError] = []

    async def attempt(address: _Address, failed: anyio.Event) -> None:
        try:
            sockets.append(await _connected(*address))
            tasks.cancel_scope.cancel()
        except OSError as error:
            errors.append(error)
            failed.set()

    try:
        async with anyio.create_task_group() as tasks:
            for address in addresses:
                failed = anyio.Event()
                tasks.start_soon(attempt, address, failed)
                with anyio.move_on_after(_NEXT_ADDRESS):
                    await failed.wait()
    except BaseException:
        for each in sockets:
            each.close()
        raise
    for each in sockets[1:]:
        each.close()
    if not sockets:
        raise ExceptionGroup("no address of the host could be reached", errors)
    return sockets[0]


async def _connected(family: socket.AddressFamily, address: tuple[Any, ...]) -> socket.socket:
    connecting = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        connecting.setblocking(False)
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connecting, address)
    except BaseException:
        connecting.close()
        raise
    return connecting
