"""How much memory a large file costs that is put into a store as a stream and read out again. Linux only.

    .venv/bin/python benchmarks/content.py [--megabytes 500]

Each store is used in a process of its own: once with a small file, after which it is idle, and then with the large one.
So is a whole gateway over HTTP, with a store in a folder: by upload, by a signed link, and from a URL that it fetches.
Printed are the peaks of its memory above idle, in and out. S3 is moto's server, in another process. Exit code 1 if a
peak is above 64 MB.
"""

import argparse
import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MOST = 64 * 1024 * 1024
MEGABYTE = 1024 * 1024
STARTS_WITHIN_SECONDS = 60.0
TOKEN = "benchmark"  # noqa: S105
_LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Row(NamedTuple):
    """One line of the table: what was done, seconds, and bytes of memory above idle."""

    trial: str
    seconds: float
    peak: int


Trial = Callable[[Path, int], list[Row]]
"""Runs with a folder of its own and a number of megabytes."""


def through_file(folder: Path, megabytes: int) -> list[Row]:
    """In a folder."""
    return through_store("file", (folder / "store").as_uri(), megabytes)


def through_s3(folder: Path, megabytes: int) -> list[Row]:
    """In a bucket."""
    with s3() as url:
        return through_store("S3", url, megabytes)


def through_http(folder: Path, megabytes: int) -> list[Row]:
    """Through a gateway that is asked over HTTP."""
    with gateway(folder, megabytes) as (pid, base):
        small = uploaded(base, iter([b"small"]), 5)
        downloaded(small["url"])
        idle = status("VmRSS", pid)
        reset_peak(pid)
        began = time.monotonic()
        large = uploaded(base, map(piece, range(megabytes)), megabytes * MEGABYTE)
        rows = [Row(f"{megabytes} MB in by POST /content", time.monotonic() - began, status("VmHWM", pid) - idle)]
        reset_peak(pid)
        began = time.monotonic()
        if downloaded(large["url"]) != large["sha256"]:
            raise SystemExit("what was downloaded is not what was uploaded")
        row = Row(f"{megabytes} MB out by GET /content", time.monotonic() - began, status("VmHWM", pid) - idle)
        return [*rows, row]


def from_url(folder: Path, megabytes: int) -> list[Row]:
    """Fetched from an allowed URL into a folder, by a process of its own."""
    command = [sys.executable, __file__, "--from-url", "--store", (folder / "store").as_uri()]
    command += ["--megabytes", str(megabytes)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    output = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, timeout=1_800).stdout
    return [Row(f"{megabytes} MB in from a URL", *json.loads(output))]


TRIALS: tuple[Trial, ...] = (through_file, through_s3, through_http, from_url)
"""What is measured."""


def through_store(name: str, url: str, megabytes: int) -> list[Row]:
    """Put and read by a process of its own."""
    environ = {**os.environ, "AWS_ACCESS_KEY_ID": "b", "AWS_SECRET_ACCESS_KEY": "b", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__, "--store", url, "--megabytes", str(megabytes)]
    output = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, timeout=1_800).stdout
    return [Row(f"{megabytes} MB {way} {name}", *figures) for way, figures in json.loads(output).items()]


async def put_and_read(url: str, megabytes: int) -> dict[str, tuple[float, int]]:
    """Seconds, and bytes above idle, of putting and of reading; run in a process that does nothing else."""
    from gateway.config.store_settings import StoreSettings
    from gateway.content.store import open_store

    found: dict[str, tuple[float, int]] = {}
    async with open_store(StoreSettings(url=url, max_bytes=4 * megabytes * MEGABYTE)) as store:
        stored = await store.put(b"small", owner="local", media_type="text/plain")
        async with store.open(stored.handle, owner="local") as opened:
            async for _ in opened:
                pass
        idle, began = status("VmRSS"), time.monotonic()
        reset_peak()
        stored = await store.put(pieces(megabytes), owner="local", media_type="application/zip")
        found["into"] = (time.monotonic() - began, status("VmHWM") - idle)
        reset_peak()
        began, sha256 = time.monotonic(), hashlib.sha256()
        async with store.open(stored.handle, owner="local") as opened:
            async for chunk in opened:
                sha256.update(chunk)
        found["out of"] = (time.monotonic() - began, status("VmHWM") - idle)
        if sha256.hexdigest() != stored.sha256:
            raise SystemExit("what was read is not what was put")
    return found


async def fetch_and_put(url: str, megabytes: int) -> tuple[float, int]:
    """Seconds, and bytes above idle, of fetching into a store; run in a process that does nothing else."""
    from gateway.config.content_settings import FetchSettings
    from gateway.config.store_settings import StoreSettings
    from gateway.content.fetch import fetch
    from gateway.content.store import open_store

    with site(megabytes) as port:
        host = f"127.0.0.1:{port}"
        most = 4 * megabytes * MEGABYTE
        settings = FetchSettings(allow=(f"http://{host}",), allow_private=(host,), max_bytes=most, timeout=1_800)
        async with open_store(StoreSettings(url=url, max_bytes=most)) as store:
            idle = began = 0.0
            for path in ("small", "large"):
                idle, began = status("VmRSS"), time.monotonic()
                reset_peak()
                async with fetch(f"http://{host}/{path}", settings) as fetched:
                    await store.put(fetched.chunks, owner="local", media_type=fetched.media_type)
            return time.monotonic() - began, int(status("VmHWM") - idle)


@contextlib.contextmanager
def site(megabytes: int) -> Generator[int]:
    """A web site, in another process, with something small and something large; its port."""
    command = [sys.executable, __file__, "--serve", "--megabytes", str(megabytes)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield int(server.stdout.readline())
    finally:
        server.kill()
        server.communicate()


def serve_site(megabytes: int) -> None:
    """Answer `/small` and `/large` until killed; the port is printed."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            count = megabytes if self.path == "/large" else 1
            self.send_response(200)
            self.send_header("Content-Length", str(count * MEGABYTE))
            self.end_headers()
            for number in range(count):
                self.wfile.write(piece(number))

        def log_message(self, format: str, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Site)
    print(server.server_port, flush=True)
    server.serve_forever()


@contextlib.contextmanager
def gateway(folder: Path, megabytes: int) -> Generator[tuple[int, str]]:
    """A gateway over HTTP with a store in the folder: its process id and address."""
    config, most = folder / "benchmark.toml", 4 * megabytes * MEGABYTE
    store = f'[store]\nurl = "{(folder / "store").as_uri()}"\nmax_bytes = {most}\n'
    config.write_text(f'[http]\ntoken = "{TOKEN}"\n{store}[content]\nmax_upload_bytes = {most}\n')
    command = [sys.executable, "-m", "gateway", "serve", "--http", "--port", "0", "--config", str(config)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_RUNTIME_DIR": str(folder), "MCP_GATEWAY_STATE": ""}
    server = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "listening on" in line)
        yield server.pid, line.split("listening on ", 1)[1].split("/mcp", 1)[0]
    finally:
        server.terminate()
        server.communicate()


def uploaded(base: str, chunks: Iterator[bytes], size: int) -> dict[str, str]:
    """What the gateway says of an upload."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Length": str(size)}
    request = urllib.request.Request(f"{base}/content", data=chunks, headers=headers, method="POST")  # noqa: S310
    with _LOOPBACK.open(request, timeout=1_800) as response:
        return json.load(response)


def downloaded(url: str) -> str:
    """The sha256 of what a link gives."""
    sha256 = hashlib.sha256()
    with _LOOPBACK.open(url, timeout=1_800) as response:
        while chunk := response.read(MEGABYTE):
            sha256.update(chunk)
    return sha256.hexdigest()


async def pieces(megabytes: int) -> AsyncIterator[bytes]:
    """A file that was never in memory as a whole, and of which no two megabytes are equal."""
    for number in range(megabytes):
        yield piece(number)


def piece(number: int) -> bytes:
    """One megabyte of it."""
    return number.to_bytes(8, "big") * (MEGABYTE // 8)


def status(name: str, pid: int | str = "self") -> int:
    """A field of a process's status, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) * 1024


def reset_peak(pid: int | str = "self") -> None:
    """Reset the peak; man proc, clear_refs."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


@contextlib.contextmanager
def s3() -> Generator[str]:
    """An S3 with a bucket, on the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + STARTS_WITHIN_SECONDS
        signed = "AWS4-HMAC-SHA256 Credential=b/20260101/us-east-1/s3/aws4_request"
        bucket = urllib.request.Request(
            f"http://127.0.0.1:{port}/bucket", method="PUT", headers={"Authorization": signed}
        )
        while True:
            try:
                _LOOPBACK.open(bucket, timeout=10).close()
                break
            except OSError:
                if time.monotonic() > deadline or server.poll() is not None:
                    raise
                time.sleep(0.2)
        yield f"s3://bucket/content?endpoint=http://127.0.0.1:{port}&region=us-east-1"
    finally:
        server.kill()
        server.wait()


def table(rows: list[Row]) -> str:
    """The figures, a line for each trial."""
    lines = [("", "seconds", "MB above idle", "")]
    for row in rows:
        verdict = "" if row.peak <= MOST else "TOO MUCH"
        lines.append((row.trial, f"{row.seconds:.1f}", f"{row.peak / MEGABYTE:.1f}", verdict))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        f"{line[0].ljust(widths[0])}  {line[1].rjust(widths[1])}  {line[2].rjust(widths[2])}  {line[3]}".rstrip()
        for line in lines
    )


def main() -> int:
    """Run the trials and print the figures."""
    parser = argparse.ArgumentParser(description="What a large file costs that goes through a store.")
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--from-url", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if sys.platform != "linux":
        print("the peak of memory is read from /proc, which only Linux has")
        return 2
    if options.serve:
        serve_site(options.megabytes)
        return 0
    if options.store is not None:
        import anyio

        measured = fetch_and_put if options.from_url else put_and_read
        print(json.dumps(anyio.run(measured, options.store, options.megabytes)))
        return 0
    rows: list[Row] = []
    for trial in TRIALS:
        with tempfile.TemporaryDirectory() as folder:
            rows += trial(Path(folder), options.megabytes)
    print(table(rows))
    print(f"at most {MOST / MEGABYTE:.0f} MB above idle")
    return 0 if all(row.peak <= MOST for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
