"""Run the stand-ins from the command line: `python -m gateway.testing.model_apis --port 0`."""

import argparse
import sys
from contextlib import suppress

import uvicorn

from gateway.testing.model_apis import APIS
from gateway.testing.model_apis.server import WRITERS, listen, model_server

_ADDRESSES = """\
stand-ins of the model APIs, on {url}
  OpenAI            base URL {url}/v1   (chat completions: {chat}; responses)
  Anthropic, Gemini, Bedrock, Cohere, Ollama
                    base URL {url}
"""


def main() -> None:
    """Serve on the loopback until Ctrl-C."""
    chats = sorted(name for name in APIS if name not in WRITERS or name in ("mistral", "groq"))
    parser = argparse.ArgumentParser(prog="python -m gateway.testing.model_apis", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: one that is free")
    parser.add_argument("--chat", choices=chats, default="openai_chat", help="who answers on /v1/chat/completions")
    options = parser.parse_args()
    with listen(options.port) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        sys.stdout.write(_ADDRESSES.format(url=url, chat=options.chat))
        sys.stdout.flush()
        config = uvicorn.Config(model_server(chat=options.chat), log_level="warning")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
