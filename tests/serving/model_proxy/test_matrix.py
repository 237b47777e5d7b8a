"""Real clients on every API, straight at a strict stand-in and through `mcp-gateway proxy`: the table in docs/proxy.md.

Each client makes a whole loop: it gets a tool from the gateway over MCP, calls it when its model asks for it, and sends
its model what it makes of the picture. What became of that is judged by the last request that arrived, and by what the
model then says that it sees. A program is `clients/with_<name>`; on stdin it gets `{"cases": [...]}`, a case being

    {"id": "...", "loop": "chat", "form": "...", "streamed": false, "model": "...", "url": "http://...", "mcp": "http://...",
     "prompt": "...", "picture": "<base64>"}

and it prints, by id, `{"answer": "..."}` or `{"raised": "..."}`.
"""

import base64
import hashlib
import importlib.util
import io
import json
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
from PIL import Image

from gateway.testing.model_apis import conversation, refusals
from gateway.testing.model_apis.server import ModelServer, model_server
from lab.serve_models import serve_models

ROOT = Path(__file__).resolve().parents[3]
CLIENTS = Path(__file__).parent / "clients"
CELLS = ROOT / "docs" / "matrix"
OLD_CLIENTS = Path(sys.prefix) / "clients" / Path(sys.executable).relative_to(sys.prefix)
LIMIT = 300
TEXTS = ["MCP's blocks", "content as JSON", "CallToolResult as JSON", "str(content)", "data URI in Markdown"]
CALLED = "MCP tools"
FAILING = ", of a failed call"
BOTH = ", of two calls at once"


@dataclass(frozen=True)
class Api:
    """An API of the matrix: the loop that speaks it, the model that is asked for, and the stand-ins that answer.

    `chat`: who answers on /v1/chat/completions; a proxy before it has its profile. `target`: who judges, if not that.
    """

    loop: str
    model: str
    chat: str = "openai_chat"
    target: str | None = None


APIS = {
    "openai_chat": Api("chat", "gpt-5"),
    "openai_chat_newer": Api("chat", "gpt-5.2"),
    "llama_cpp": Api("chat", "gemma-3-12b", "llama_cpp", "llama_cpp"),
    "openai_responses": Api("responses", "gpt-5", target="openai_responses"),
    "anthropic_messages": Api("messages", "claude-sonnet-5", target="anthropic_messages"),
    "gemini": Api("gemini", "gemini-3-pro", target="gemini"),
    "gemini_2_5": Api("gemini", "gemini-2.5-pro", target="gemini"),
    "ollama": Api("ollama", "llava", target="ollama"),
}
GEMINI_FORMS = [
    "CallToolResult in response",
    f"CallToolResult in response{BOTH}",
    "content as JSON",
    "bytes in response",
    "parts of the response",
    "an MCP session as a tool",
    f"error as JSON{FAILING}",
]
ROWS: dict[str, dict[str, list[str]]] = {
    # program: by API, the forms in which it sends a result
    "openai": {
        "openai_chat": [*TEXTS, "image_url parts", f"image_url parts{BOTH}"],
        "openai_chat_newer": ["image_url parts"],
        "llama_cpp": [*TEXTS, "image_url parts"],
        "openai_responses": [*TEXTS, "image_url parts", f"image_url parts{BOTH}"],
    },
    "anthropic": {
        "anthropic_messages": [
            *TEXTS,
            f"MCP's blocks{BOTH}",
            "the SDK's own blocks",
            f"the SDK's own blocks{FAILING}",
        ]
    },
    "google_genai": dict.fromkeys(("gemini", "gemini_2_5"), GEMINI_FORMS),
    "ollama": {"ollama": ["content as JSON", "CallToolResult as JSON", "str(content)", "data URI in Markdown"]},
    "langchain": {api: [CALLED, f"{CALLED}{BOTH}"] for api in APIS},
    "ai_sdk": {api: [CALLED, f"{CALLED}{BOTH}"] for api in APIS if api != "ollama"},
    "recorded": {
        "openai_chat": ["Cline", "AutoGen", "LlamaIndex", "CrewAI, MCPServerAdapter", "AG2, an error"],
        "openai_responses": ["Codex", "OpenAI Agents", "LlamaIndex", "AG2, an error"],
        "anthropic_messages": ["Cline"],
        "gemini": ["google-adk", "Gemini CLI, an error"],
        "gemini_2_5": ["google-adk", "Gemini CLI, an error"],
    },
}
PACKAGES = {"openai": "openai", "anthropic": "anthropic", "google_genai": "google.genai", "ollama": "ollama"}
LOOPS = {("ai_sdk", "llama_cpp"): "compatible"}
PLACES = ("before", "after")


@dataclass
class Stage:
    """What the clients run against: addresses by API, before and after, the pictures by tool, and the stand-ins."""

    gateway: str
    urls: dict[tuple[str, str], str]
    pictures: dict[str, str]
    servers: list[ModelServer] = field(default_factory=list[ModelServer])

    def last(self, prompt: str) -> Any:
        """The last request that held this prompt, with the model where the address names it."""
        found = [one for server in self.servers for one in server.requests if prompt.encode() in one.body]
        model = found[-1].path.rpartition("/")[2].partition(":")[0] if "/models/" in found[-1].path else None
        return found[-1].json | ({"model": model} if model else {})

    def sight(self, tools: list[str]) -> str:
        """What the model says when it sees the pictures of these tools."""
        contents = [base64.b64decode(self.pictures[tool]) for tool in tools]
        told = [f"image/png 40x30 sha256 {hashlib.sha256(content).hexdigest()[:12]}" for content in contents]
        return f"I see {len(tools)} image{'s' if len(tools) > 1 else ''}: {', '.join(told)}"

    def times(self, tool: str, request: Any) -> int:
        """How often a tool's picture stands in a request, as base64 of either alphabet."""
        text, inside = json.dumps(request), self.pictures[tool][200:260]
        return text.count(inside) + text.count(inside.translate(str.maketrans("+/", "-_")))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """A gateway; stand-ins for each kind of Chat Completions, all other APIs beside it; and a proxy before each."""
    pictures = {"snap": noise(7), "other": noise(8)}
    pictures["fail"] = pictures["snap"]
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("gateway")
        config = written(folder, pictures)
        gateway = stack.enter_context(started(folder, "serve", "--config", str(config), "--http", "--port", "0"))
        made = Stage(f"{gateway}/mcp/patient", {}, pictures)
        for chat in sorted({api.chat for api in APIS.values()}):
            server = model_server(chat=chat)
            made.servers.append(server)
            behind = stack.enter_context(serve_models(server))
            profile = () if chat == "openai_chat" else ("--profile", chat)
            folder = tmp_path_factory.mktemp("proxy")  # one without a configuration
            proxy = stack.enter_context(started(folder, "proxy", "--to", behind, "--port", "0", *profile))
            for name in (name for name, api in APIS.items() if api.chat == chat):
                made.urls |= {(name, "before"): behind, (name, "after"): proxy}
        yield made


def noise(seed: int) -> str:
    """A picture as base64, with a sign in its middle that the URL-safe alphabet does not have."""
    image, buffer = Image.frombytes("RGB", (40, 30), random.Random(seed).randbytes(40 * 30 * 3)), io.BytesIO()
    image.save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    assert "+" in data[200:260] or "/" in data[200:260]
    return data


def written(folder: Path, pictures: dict[str, str]) -> Path:
    """The configuration of a gateway with one upstream, whose tools give their picture, or fail with it."""
    results: dict[str, Any] = {}
    for name, picture in pictures.items():
        image = {"type": "image", "data": picture, "mimeType": "image/png"}
        results[name] = {"content": [{"type": "text", "text": "A chart."}, image], "isError": name == "fail"}
    script = {
        "tools": [{"name": name, "inputSchema": {"type": "object", "properties": {}}} for name in pictures],
        "results": results,
    }
    (folder / "script.json").write_text(json.dumps(script), "utf-8")
    arguments = [str(ROOT / "tests" / "servers" / "scripted_stdio.py"), str(folder / "script.json")]
    config = folder / "mcp-gateway.toml"
    config.write_text(
        f"[upstreams.cam]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(arguments)}\n"
        '[profiles.patient]\nextends = "passthrough"\nsets.wait.tools_list = 60\n',
        "utf-8",
    )
    return config


def environment(**more: str) -> dict[str, str]:
    """Of all processes. Nothing here leaves the machine, so no proxy of its own has any business with it."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", "LANGSMITH_TRACING": "false", **more}


@contextmanager
def started(folder: Path, *arguments: str) -> Generator[str]:
    """The address that one of the gateway's commands says it listens on."""
    command = [sys.executable, "-m", "gateway", *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said: list[str] = []
        try:
            for line in process.stderr:
                said.append(line)
                if found := re.fullmatch(
                    r"(?:listening on|) *(http://127\.0\.0\.1:\d+)(?:/mcp .*| +Anthropic.*)", line.rstrip()
                ):
                    break
            else:
                pytest.fail(f"{arguments[0]} did not start:\n{''.join(said)}", pytrace=False)
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield found[1]
            process.terminate()
            process.wait(LIMIT)
        finally:
            process.kill()


@pytest.fixture
def program(missing: Callable[[str, str], NoReturn], request: pytest.FixtureRequest) -> Callable[[str], list[str]]:
    """How to start a client, by its name."""

    def command(client: str) -> list[str]:
        script, remedy = CLIENTS / f"with_{client}.py", "run `make setup`, and the tests with .venv/bin/python"
        if client == "ai_sdk":
            modules = request.getfixturevalue("node_modules")
            if not (modules / "ai").is_dir():
                missing("the AI SDK", remedy)
            return ["node", str(script.with_suffix(".mjs"))]
        if client == "langchain":
            asked = "import sys, importlib.util; sys.exit(importlib.util.find_spec('langchain_openai') is None)"
            if not OLD_CLIENTS.exists() or subprocess.run([str(OLD_CLIENTS), "-c", asked], check=False).returncode:
                missing("the environment of LangChain", remedy)
            return [str(OLD_CLIENTS), str(script)]
        if client in PACKAGES and importlib.util.find_spec(PACKAGES[client]) is None:
            missing(PACKAGES[client], remedy)
        return [sys.executable, str(script)]

    return command


def cases_of(client: str, stage: Stage) -> Generator[dict[str, Any]]:
    for name, forms in ROWS[client].items():
        api = APIS[name]
        for form in forms:
            tools = ["snap", "other"] if form.endswith(BOTH) else ["fail"] if form.endswith(FAILING) else ["snap"]
            for place in PLACES:
                for streamed in (False, True) if client != "recorded" else (False,):
                    mark = f"Case {client} {name} {form} {place} {'streamed' if streamed else 'whole'}."
                    yield {
                        "id": mark,
                        "api": name,
                        "place": place,
                        "loop": LOOPS.get((client, name), api.loop),
                        "form": form.removesuffix(FAILING).removesuffix(BOTH),
                        "said": form,
                        "streamed": streamed,
                        "model": api.model,
                        "url": stage.urls[name, place],
                        "mcp": stage.gateway,
                        "tools": tools,
                        "prompt": "\n".join(
                            [mark, *(f"call cam__{tool} {{}}" for tool in tools if client != "recorded")]
                        ),
                        "picture": stage.pictures["snap"],
                    }


def cell(case: dict[str, Any], outcome: dict[str, str], stage: Stage) -> str:
    """The word of docs/proxy.md for what became of a case."""
    api = APIS[case["api"]]
    request = stage.last(case["id"])
    target = api.target or api.chat
    refused = refusals(target, request)
    if "raised" in outcome:
        return "refused" if refused else f"raised {outcome['raised']}"
    assert not refused, refused
    times = [stage.times(tool, request) for tool in case["tools"]]
    if outcome["answer"] == stage.sight(case["tools"]):
        return "seen" if set(times) == {1} else f"seen, and {times} times in the request"
    if outcome["answer"] == "I see no media.":
        read = conversation(target, request)
        assert read is not None
        unshown = sum(stage.times(tool, media.data) for media in read.media for tool in case["tools"])
        return "text" if sum(times) > unshown else "lost"
    return outcome["answer"]


@pytest.mark.parametrize("client", ROWS)
def test_a_client_shows_its_model_the_picture_through_the_proxy(
    stage: Stage, program: Any, tmp_path: Path, golden: Any, client: str
) -> None:
    cases = list(cases_of(client, stage))
    done = subprocess.run(
        program(client),
        input=json.dumps({"cases": cases}),
        cwd=tmp_path,
        env=environment(HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    outcomes = json.loads(done.stdout.splitlines()[-1])
    cells: dict[str, dict[str, dict[str, str]]] = {}
    for case in cases:
        place = f"{case['place']}{', streamed' if case['streamed'] else ''}"
        row = cells.setdefault(case["api"], {}).setdefault(case["said"], {})
        row[place] = cell(case, outcomes[case["id"]], stage)
    rows = {(api, form): row for api, forms in cells.items() for form, row in forms.items()}
    assert {key: row for key, row in rows.items() if any(row[p] != "seen" for p in row if p.startswith("after"))} == {}
    golden(CELLS / f"{client}.json", json.dumps(cells, indent=2) + "\n")
