"""Run the stand-ins from the command line: `python -m gateway.testing.model_apis --port 0`."""

import argparse
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn

from gateway.testing.model_apis import APIS
from gateway.testing.model_apis.server import WRITERS, OnRequest, Recorded, listen, model_server

_ADDRESSES = """\
stand-ins of the model APIs, on {url}
  OpenAI            base URL {url}/v1   (chat completions: {chat}; responses)
  Anthropic, Gemini, Bedrock, Cohere, Ollama
                    base URL {url}
"""


_CREDENTIALS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})


@contextmanager
def _log(path: Path | None) -> Generator[OnRequest]:
    """Context manager that gives what writes each request to the file, if there is one; without credentials."""
    if path is None:
        yield lambda _: None
        return
    with path.open("a", encoding="utf-8") as file:

        def write(request: Recorded) -> None:
            headers = {name: value for name, value in request.headers.items() if name not in _CREDENTIALS}
            try:
                body = request.json
            except ValueError:
                body = request.body.decode("utf-8", "replace")
            line = {"method": request.method, "path": request.path, "headers": headers, "body": body}
            file.write(json.dumps(line) + "\n")
            file.flush()

        yield write


def main() -> None:
    """Serve on the loopback until Ctrl-C."""
    chats = sorted(name for name in APIS if name not in WRITERS or name in ("mistral", "groq"))
    parser = argparse.ArgumentParser(prog="python -m gateway.testing.model_apis", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: one that is free")
    parser.add_argument("--chat", choices=chats, default="openai_chat", help="who answers on /v1/chat/completions")
    parser.add_argument("--log", type=Path, metavar="FILE", help="append each request to FILE, as a line of JSON")
    options = parser.parse_args()
    with _log(options.log) as log, listen(options.port) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        sys.stdout.write(_ADDRESSES.format(url=url, chat=options.chat))
        sys.stdout.flush()
        config = uvicorn.Config(model_server(chat=options.chat, on_request=log), log_level="warning")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
