"""How soon a host gets its first answer: `initialize` and `server/discover` over stdio, against importing the SDK.

    .venv/bin/python benchmarks/first_answer.py [--rounds 7]

Ten upstreams are configured, one of them never answers. Printed are medians, and their ratio to
`python -c "import mcp.server.lowlevel"` on the same machine in the same run: at most 1.2, aimed at 0.6, because one
real client gives up after a second (@ai-sdk/mcp waits 1,000 ms for server/discover).

With `--shared`, the process of the host is a relay (`serve --shared`), and its memory is printed too.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "0"},
    },
}
DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
ROOT = Path(__file__).parent.parent


def write_config(folder: Path) -> Path:
    """Nine upstreams that work and one that never answers."""
    lines: list[str] = []
    for number in range(9):
        lines += [f"[upstreams.charts{number}]", f"command = {json.dumps(sys.executable)}"]
        lines += ['args = ["-m", "examples.charts"]', f"cwd = {json.dumps(str(ROOT))}"]
    lines += ["[upstreams.hangs]", f"command = {json.dumps(sys.executable)}"]
    lines += ['args = ["-c", "import time; time.sleep(3600)"]']
    config = folder / "mcp-gateway.toml"
    lines += ["[shared]", "linger = 1"]
    config.write_text("\n".join(lines) + "\n", "utf-8")
    return config


def first_answer(config: Path, message: Mapping[str, object], *options: str) -> float:
    """Seconds from starting the gateway to its first answer."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "gateway", "serve", "--config", str(config), *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        took = time.perf_counter() - started
        if "result" not in answer:
            raise SystemExit(f"no answer but {answer}")
        process.send_signal(signal.SIGTERM)
    return took


def relay_memory(config: Path) -> int:
    """Bytes of RAM of a relay that is attached, and has passed a list of tools on."""
    command = [sys.executable, "-m", "gateway", "serve", "--shared", "--config", str(config)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in (INITIALIZE, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("id") != 2:
            pass
        memory = psutil.Process(process.pid).memory_info().rss
        process.stdin.close()
    return memory


def importing() -> float:
    """Seconds that importing the SDK's low-level server takes, process start included."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp.server.lowlevel"], check=True)
    return time.perf_counter() - started


def main() -> int:
    """Measure in turn, so that a busy moment of the machine hits all alike."""
    parser = argparse.ArgumentParser(description="How soon a host gets its first answer.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--shared", action="store_true")
    given = parser.parse_args()
    rounds, options = given.rounds, ["--shared"] if given.shared else []
    times: dict[str, list[float]] = {"import mcp.server.lowlevel": [], "initialize": [], "server/discover": []}
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder))
        for _ in range(rounds):
            times["import mcp.server.lowlevel"].append(importing())
            times["initialize"].append(first_answer(config, INITIALIZE, *options))
            times["server/discover"].append(first_answer(config, DISCOVER, *options))
        memory = relay_memory(config) if given.shared else None
    base = statistics.median(times["import mcp.server.lowlevel"])
    worst = 0.0
    for name, taken in times.items():
        ratio = statistics.median(taken) / base
        worst = max(worst, ratio)
        print(f"{name:28} {statistics.median(taken) * 1000:7.0f} ms   ratio {ratio:.2f}   ({os.cpu_count()} cores)")
    if memory is not None:
        print(f"memory of a relay            {memory / 1e6:7.0f} MB")
    return 0 if worst <= 1.2 else 1


if __name__ == "__main__":
    sys.exit(main())
