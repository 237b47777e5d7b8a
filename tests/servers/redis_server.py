"""A real Redis on a loopback port, with a password. It keeps nothing."""

import signal
import socket
import subprocess
import time
from pathlib import Path

import redis

PASSWORD = "a password of redis"


class RedisServer:
    """Can be stopped and started again, on the same port."""

    def __init__(self, program: str, folder: Path, *, in_cluster: bool = False) -> None:
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self.bus = _free_port(), _free_port()
        # Such a node is told its port for the others: by default it is one that is 10,000 higher, which may not exist.
        bus = ["--cluster-port", str(self.bus), "--cluster-node-timeout", "2000", "--masterauth", PASSWORD]
        self._more = ["--cluster-enabled", "yes", *bus] if in_cluster else []

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--requirepass", PASSWORD, "--dir", self._folder]
        kept_nowhere = ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        log = (self._folder / "redis.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [self._program, *options, *kept_nowhere, *self._more], stdout=log, stderr=log
            )
        until = time.monotonic() + 30
        while True:
            assert self._process.poll() is None, (self._folder / "redis.log").read_text("utf-8")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert time.monotonic() < until, "redis-server does not start"
                time.sleep(0.02)
            else:
                return

    def hang(self, *, ended: bool = False) -> None:
        """Let it take connections, and answer nothing, until that has `ended`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT if ended else signal.SIGSTOP)

    def stop(self) -> None:
        """Kill it, and with it all that it knows."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class RedisCluster:
    """Three nodes on loopback ports, without replicas, which share the slots."""

    def __init__(self, program: str, folder: Path) -> None:
        self._nodes: list[RedisServer] = []
        for place in range(3):
            (own := folder / f"node{place}").mkdir()
            self._nodes.append(RedisServer(program, own, in_cluster=True))

    @property
    def url(self) -> str:
        return self._nodes[0].url.replace("redis://", "redis+cluster://").removesuffix("/0")

    def start(self) -> None:
        """Start the nodes, give them their slots, and wait until each knows all."""
        for node in self._nodes:
            node.start()
        share = 16_384 // len(self._nodes) + 1
        clients = [redis.Redis(port=node.port, password=PASSWORD, decode_responses=True) for node in self._nodes]
        for place, client in enumerate(clients):
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", place * share, min((place + 1) * share, 16_384) - 1)
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", place + 1)
            if place:
                client.execute_command("CLUSTER", "MEET", "127.0.0.1", self._nodes[0].port, self._nodes[0].bus)
        until = time.monotonic() + 30
        while any("cluster_state:ok" not in str(client.execute_command("CLUSTER", "INFO")) for client in clients):
            assert time.monotonic() < until, "the cluster does not come together"
            time.sleep(0.05)
        for client in clients:
            client.close()

    def stop(self) -> None:
        """Kill all nodes."""
        for node in self._nodes:
            node.stop()
