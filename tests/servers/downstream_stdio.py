"""The sample service as a process on stdio, opened the way `mcp-gateway serve` does it.

Arguments: `--late SECONDS` sleeps before the opening, `--hold FD` starts the service only when something comes on that
descriptor, `--fail TEXT` fails to start it, `--max-line BYTES` bounds messages, `--linger SECONDS`.
`--passed SECONDS`: by the opening's clock nothing passes but these seconds, at the moment when the service has started.
"""

import sys

from gateway.serving.mcp.early_stdio import EarlyStdio
from gateway.serving.mcp.handshake import Identity

options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
if "--late" in options:
    import time

    time.sleep(float(options["--late"]))
passed = [0.0]
opening = EarlyStdio(
    Identity("sample", "1.0", "Sample", "Be kind."),
    max_line_bytes=int(options.get("--max-line", 16 * 1024 * 1024)),
    clock=lambda: passed[0],
)
opening.start()

import asyncio  # noqa: E402
import signal  # noqa: E402
from collections.abc import AsyncGenerator  # noqa: E402
from contextlib import asynccontextmanager  # noqa: E402

import anyio  # noqa: E402
from downstream_service import SampleService  # noqa: E402

from gateway.errors import ConfigError, GatewayError  # noqa: E402
from gateway.serving.mcp.stdio import serve_stdio  # noqa: E402


@asynccontextmanager
async def open_service() -> AsyncGenerator[SampleService]:
    try:
        if "--fail" in options:
            raise ConfigError(options["--fail"])
        if "--hold" in options:
            released = asyncio.Event()
            asyncio.get_running_loop().add_reader(int(options["--hold"]), released.set)
            await released.wait()
            asyncio.get_running_loop().remove_reader(int(options["--hold"]))
        passed[0] += float(options.get("--passed", 0))
        yield SampleService()
    finally:
        print("service closed", file=sys.stderr, flush=True)


async def main() -> None:
    async with anyio.create_task_group() as tasks:

        async def until_signalled() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for _ in signals:
                    tasks.cancel_scope.cancel()
                    return

        tasks.start_soon(until_signalled)
        try:
            await serve_stdio(opening, open_service, linger=float(options.get("--linger", 3.0)))
        except GatewayError as error:
            print(f"could not start: {error}", file=sys.stderr)
        tasks.cancel_scope.cancel()


anyio.run(main)
