"""The workers of one machine as replicas of each other: what they share is in a file, and they meet at Unix sockets."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import httpx2

from gateway.config.schema import Settings
from gateway.serving.cluster.cluster import Cluster
from gateway.serving.cluster.forward_request import UNLIMITED, forwarding_client
from gateway.serving.cluster.local_use import LocalUse
from gateway.serving.cluster.replicas import Replica, new_id
from gateway.serving.databases.local_records import LocalRecords

_RECORDS = "records.sqlite3"
_MOST_KNOWN = 256
"""Maximum number of workers to which a connection pool is kept; those that have ended are among them."""


class WorkerTransport(httpx2.AsyncBaseTransport):
    """Sends requests for `http://ID` to the Unix socket of the worker with this id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._transports: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it. Only ids that the workers have written in the file come here."""
        worker = request.url.host
        transport = self._transports.get(worker)
        if transport is None:
            if len(self._transports) >= _MOST_KNOWN:
                self._transports.pop(next(iter(self._transports)))
            path = str(socket_path(self._folder, worker))
            transport = self._transports[worker] = httpx2.AsyncHTTPTransport(uds=path, limits=UNLIMITED)
        return await transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        for transport in self._transports.values():
            await transport.aclose()


def socket_path(folder: Path, worker: str) -> Path:
    """Return the path of the socket at which a worker takes the requests that others pass on."""
    return folder / f"{worker}.s"


@asynccontextmanager
async def open_machine_cluster(settings: Settings, folder: Path) -> AsyncGenerator[Cluster]:
    """Provide this worker among those that share `folder`.

    Raises:
        OSError: the file in it cannot be used.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(forwarding_client(WorkerTransport(folder)))
        records = LocalRecords(folder / _RECORDS)
        stack.push_async_callback(records.close)
        name = new_id()
        own = Replica(name, f"http://{name}")
        cluster = Cluster(settings, client, records, own, partial(LocalUse, records, name))
        await cluster.secret.agree(records)
        yield cluster
