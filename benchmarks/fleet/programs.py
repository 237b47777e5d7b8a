"""The programs of a fleet: Redis, a store like S3, the server, the replicas and the proxy, each on a loopback port."""

import asyncio
import shutil
import signal
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import httpx2

from benchmarks.calls.gateways import ROOT, environ
from benchmarks.calls.processes import STARTS_WITHIN, free_port
from benchmarks.fleet.layout import BUCKET, CREDENTIALS, REDIS_PASSWORD, gateway_toml, nginx_conf
from benchmarks.fleet.relay import Relay

_ENDS_WITHIN: Final = 60.0
_DEBIAN: Final = "apt-get install --no-install-recommends nginx-light redis-server"


class Missing(Exception):
    """A program is not installed, or does not start; the message says what to do."""


class Program:
    """A process that listens at a port, and can be started again there."""

    def __init__(
        self, name: str, command: Sequence[str], port: int, folder: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.port = port
        self._command = command
        self._log = folder / f"{name}.log"
        self._env = {**environ(folder), **(env or {})}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and wait until it listens. Raises Missing if it does not."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=self._env, cwd=ROOT
            )
        end = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < end and self._process.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
        raise Missing(f"{self.name} does not start: {self._log.read_text('utf-8', 'replace')[-2_000:]}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def ended(self, within: float = _ENDS_WITHIN) -> int:
        """Wait until it has ended, and return its status. It is killed when it takes longer than that."""
        assert self._process is not None
        try:
            async with asyncio.timeout(within):
                return await self._process.wait()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return await self._process.wait()

    async def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            await self.ended(5)


class Fleet:
    """All programs. `entrance` is the port of the proxy; `replicas` are those that it knows."""

    def __init__(self, folder: Path, *, nginx: bool, lost_after: float, grace: float) -> None:
        self._folder = folder
        self._nginx = program("nginx") if nginx else None
        self.entrance = free_port()
        self.upstream = Program("upstream", _module("benchmarks.fleet.upstream", port := free_port()), port, folder)
        self.redis = Program("redis", _redis(folder, port := free_port()), port, folder)
        s3 = _module("moto.server", "-H", "127.0.0.1", "-p", port := free_port())
        self.s3 = Program("s3", s3, port, folder)
        self.store = Relay(free_port(), [self.s3.port])
        self.replicas: list[Program] = []
        self.proxy: Program | Relay | None = None
        self._config = folder / "fleet.toml"
        self._config.write_text(
            gateway_toml(
                redis=self.redis.port,
                store=self.store.port,
                upstream=self.upstream.port,
                lost_after=lost_after,
                grace=grace,
            ),
            "utf-8",
        )
        self._started: list[Program] = []

    async def start(self, replicas: int) -> None:
        """Start everything."""
        for each in (self.redis, self.s3, self.upstream):
            self._started.append(each)
            await each.start()
        await _make_bucket(self.s3.port)
        await self.store.__aenter__()
        self.replicas = list(await asyncio.gather(*(self._replica() for _ in range(replicas))))
        if self._nginx is None:
            self.proxy = await Relay(self.entrance, [each.port for each in self.replicas]).__aenter__()
            return
        self._write_nginx()
        command = [self._nginx, "-p", str(self._folder), "-c", str(self._folder / "nginx.conf")]
        self.proxy = Program("nginx", command, self.entrance, self._folder)
        self._started.append(self.proxy)
        await self.proxy.start()

    async def add_replica(self) -> None:
        """Start another replica, and let the proxy know."""
        self.replicas.append(await self._replica())
        await self._reload()

    async def remove(self, replica: Program) -> None:
        """Let the proxy forget a replica."""
        self.replicas.remove(replica)
        await self._reload()

    async def stop(self) -> None:
        """End everything."""
        if isinstance(self.proxy, Relay):
            await self.proxy.__aexit__()
        for each in reversed(self._started):
            await each.stop()
        await self.store.__aexit__()

    async def _replica(self) -> Program:
        port = free_port()
        name = f"replica{len([one for one in self._started if one.name.startswith('replica')])}"
        command = [*_module("gateway"), "serve", "--http", "--port", str(port), "--config", str(self._config)]
        state = {"MCP_GATEWAY_STATE": str(self._folder / name)}
        replica = Program(name, command, port, self._folder, {**CREDENTIALS, **state})
        self._started.append(replica)
        await replica.start()
        return replica

    async def _reload(self) -> None:
        if isinstance(self.proxy, Relay):
            self.proxy.servers = [each.port for each in self.replicas]
        elif self.proxy is not None:
            self._write_nginx()
            self.proxy.signal(signal.SIGHUP)

    def _write_nginx(self) -> None:
        text = nginx_conf(self._folder, self.entrance, [each.port for each in self.replicas])
        (self._folder / "nginx.conf").write_text(text, "utf-8")


@asynccontextmanager
async def running_fleet(
    folder: Path, *, replicas: int = 3, nginx: bool, lost_after: float, grace: float
) -> AsyncGenerator[Fleet]:
    """Provide a fleet that runs.

    Raises:
        Missing: a program is not installed, or does not start.
    """
    fleet = Fleet(folder, nginx=nginx, lost_after=lost_after, grace=grace)
    try:
        await fleet.start(replicas)
        yield fleet
    finally:
        await fleet.stop()


def program(name: str) -> str:
    """Return the path of a program. Raises Missing if it is not installed."""
    if (found := shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")) is None:
        raise Missing(f"{name} is not installed; on Debian and Ubuntu: {_DEBIAN}")
    return found


def _redis(folder: Path, port: int) -> list[str]:
    nothing_kept = ["--save", "", "--appendonly", "no", "--daemonize", "no"]
    return [
        *(program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)),
        *("--requirepass", REDIS_PASSWORD, "--maxmemory-policy", "noeviction", *nothing_kept),
    ]


def _module(name: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", name, *map(str, arguments)]


async def _make_bucket(port: int) -> None:
    signed = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request"
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
        answer = await http.put(f"http://127.0.0.1:{port}/{BUCKET}", headers={"Authorization": signed})
        answer.raise_for_status()
