"""A raw MCP server on stdio: `python raw_stdio.py [FLAG ...]`.

Flags beside those of raw_mcp: die-at-start, die-telling (its API_TOKEN), silent (reads, answers nothing), deaf (does
not even read), garbage (prints other things on stdout), noisy (a long line on stderr), flood (lines on stderr without
end), wrong-ids (answers with strange ids too), stubborn (ignores SIGTERM and closed input), long-line (a huge line for
every call of `odd`; with id-hidden it tells its id at neither end), die-with-child (leaves a child that holds stdout
when `die` is called).
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

from raw_mcp import Server

flags = set(sys.argv[1:])
writing = threading.Lock()


def send(message):
    line = json.dumps(message, ensure_ascii=False).encode()
    with writing:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def endless_line(message):
    size = 3_000_000
    head = b'{"id":%d,' % message["id"] if "id-hidden" in flags else b'{"jsonrpc":"2.0","id":%d,' % message["id"]
    with writing:
        sys.stdout.buffer.write(head + b'"result":{"content":[],"x":"' + b"y" * size + b'"}}\n')
        sys.stdout.buffer.flush()


def answer(server, message):
    name = (message.get("params") or {}).get("name")
    if "long-line" in flags and name == "odd":
        endless_line(message)
    elif "wrong-ids" in flags:
        for strange in ("nobody", 99_999, None, {"an": "object"}, True):
            send({"jsonrpc": "2.0", "id": strange, "result": {"content": []}})
        send(["batch", 1])
        if name == "odd":
            send({"jsonrpc": "2.0", "id": message["id"], "result": "no object"})
        else:
            server.handle(message, send)
    else:
        if "die-with-child" in flags and name == "die":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        server.handle(message, send)


def flood():
    while True:
        sys.stderr.write("noise " * 10_000 + "\n")
        time.sleep(0.01)


def main():
    if "die-at-start" in flags:
        print("Traceback (most recent call last):\n  File 'x'\nKeyError: 'API_KEY'\n", file=sys.stderr, end="")
        sys.exit(1)
    if "die-telling" in flags:
        print(f"refused with {os.environ['API_TOKEN']} \x1b]0;owned\x07", file=sys.stderr)
        sys.exit(7)
    if "stubborn" in flags:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "garbage" in flags:
        print("Welcome to \x1b[1mraw\x1b[0m server!\n{not json}\n\n[]", flush=True)
        os.write(1, b"\xff\xfe broken bytes\n")
    if "noisy" in flags:
        sys.stderr.write("noise " * 100_000 + "\n")
    if "flood" in flags:
        threading.Thread(target=flood, daemon=True).start()
    if "deaf" in flags:
        time.sleep(600)
    server = Server(flags)
    for line in sys.stdin.buffer:
        if "silent" not in flags:
            threading.Thread(target=answer, args=(server, json.loads(line)), daemon=True).start()
    while "stubborn" in flags:
        time.sleep(600)


main()
