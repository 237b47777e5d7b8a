"""NeMo Data Designer, whose tools are the gateway's and whose model API is the proxy: every image is seen.

It runs in an environment of its own, as `make setup` makes it. Each row calls four tools at once: a chart, a picture
inside an embedded resource, a PDF, and one that fails. The stand-ins of the model APIs refuse what the real ones do,
and their model says what it sees.
"""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from gateway.testing.model_apis import refusals, seen
from gateway.testing.model_apis.server import ModelServer, Recorded, model_server
from lab.serve_models import serve_models

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).parent / "clients" / "with_data_designer.py"
PYTHON = Path(sys.prefix) / "data-designer" / Path(sys.executable).relative_to(sys.prefix)
GATEWAY = [sys.executable, "-m", "gateway"]
CHARTS = ["-m", "examples.charts"]
PATIENCE = 200

DOCUMENTS = ["clouds", "knots", "lighthouse"]
PROMPT = """Describe {{ document }}.
call charts__draw_chart {"title": "{{ document }}"}
call documents__cover {"document": "{{ document }}"}
call documents__read_pdf {"document": "{{ document }}"}
call documents__read_markdown {"document": "not {{ document }}"}
"""
APIS = {"openai_chat": "openai", "anthropic_messages": "anthropic"}
TRANSPORTS = ["sse", "streamable_http", "stdio"]


@dataclass(frozen=True)
class Originals:
    """What the upstreams themselves return for one document, as base64."""

    chart: str
    cover: str
    pdf: str


@dataclass(frozen=True)
class Made:
    """A job that was done: each row's text by its document, or why there are none; and the last request for each."""

    rows: Mapping[str, str]
    error: str
    requests: Mapping[str, Recorded]


def environment(**more: str) -> dict[str, str]:
    """Nothing leaves the machine: Data Designer's statistics and its download of a tokenizer fail at once."""
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1", "NEMO_TELEMETRY_ENABLED": "false"}
    return {**os.environ, "PYTHONPATH": str(ROOT), **nowhere, **more}


@contextmanager
def started(command: list[str], *patterns: str) -> Generator[list[str]]:
    """A program, and what each of the patterns found in its stderr."""
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        try:
            for line in process.stderr:
                said += line
                if all(found := [re.search(pattern, said) for pattern in patterns]):
                    break
            else:
                pytest.fail(f"{command} did not start:\n{said}", pytrace=False)
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield [match[1] for match in found if match]
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        finally:
            process.kill()


@contextmanager
def stand_ins() -> Generator[tuple[str, ModelServer]]:
    """The model APIs, in a thread: their address, and what they were asked."""
    app = model_server()
    with serve_models(app) as url:
        yield url, app


@pytest.fixture(scope="module")
def documents() -> Generator[str]:
    """The address of the example server of documents."""
    with started([sys.executable, "-m", "examples.documents", "--port", "0"], r"listening on (\S+)") as [url]:
        yield url


@pytest.fixture(scope="module")
def originals(documents: str) -> dict[str, Originals]:
    async def ask() -> dict[str, Originals]:
        charts = StdioServerParameters(command=sys.executable, args=CHARTS, cwd=ROOT)
        with anyio.fail_after(PATIENCE):
            async with Client(charts) as drawing, Client(documents) as library:
                found: dict[str, Originals] = {}
                for name in DOCUMENTS:
                    chart: Any = (await drawing.call_tool("draw_chart", {"title": name})).content[-1]
                    cover: Any = (await library.call_tool("cover", {"document": name})).content[0]
                    pdf: Any = (await library.call_tool("read_pdf", {"document": name})).content[0]
                    found[name] = Originals(chart.data, cover.resource.blob, pdf.resource.blob)
                return found

    return anyio.run(ask)


@pytest.fixture(scope="module")
def made(documents: str, missing: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """Every job, by name. One process does them all: starting it is what takes most of the time."""
    if not PYTHON.exists():
        missing("Data Designer", "run `make setup`, and the tests with .venv/bin/python")
    folder = tmp_path_factory.mktemp("data-designer")
    alone, shared = folder / "alone.toml", folder / "shared.toml"
    upstreams = f"""
        [upstreams.charts]
        command = {json.dumps(sys.executable)}
        args = {json.dumps(CHARTS)}
        cwd = {json.dumps(str(ROOT))}
        [upstreams.documents]
        url = "{documents}"
    """
    alone.write_text(upstreams, "utf-8")
    with stand_ins() as (model, app):
        shared.write_text(f'{upstreams}\n[model_proxy]\nto = "{model}"\nport = 0\n', "utf-8")
        proxied = r"(http://127\.0\.0\.1:\d+)\s+Anthropic"
        serve = [*GATEWAY, "serve", "--config", str(shared), "--http", "--port", "0"]
        with (
            started([*GATEWAY, "proxy", "--to", model, "--port", "0"], proxied) as [proxy],
            started(serve, r"listening on (http://[\d.:]+)/mcp", proxied) as [gateway, beside],
        ):
            providers = {
                "sse": {"endpoint": f"{gateway}/sse/data-designer"},
                "streamable_http": {"endpoint": f"{gateway}/mcp/data-designer"},
                "stdio": {
                    "command": GATEWAY[0],
                    "args": [*GATEWAY[1:], "serve", "--config", str(alone), "--profile", "data-designer"],
                    "env": {"PYTHONPATH": str(ROOT)},
                },
            }
            unshaped = {"endpoint": f"{gateway}/sse/passthrough"}
            ways = {
                **{name: (name, provider, proxy) for name, provider in providers.items()},
                "one store": ("sse", providers["sse"], beside),
                "only the proxy": ("sse", unshaped, proxy),
                "only the gateway": ("sse", providers["sse"], model),
                "neither": ("sse", unshaped, model),
            }
            jobs = {
                f"{way}, {api}": {
                    "mcp": {"provider_type": transport, **provider},
                    "model": {"provider_type": APIS[api], "endpoint": f"{endpoint}/v1"},
                    "documents": DOCUMENTS,
                    "prompt": PROMPT,
                }
                for way, (transport, provider, endpoint) in ways.items()
                for api in APIS
            }
            outcomes = run(jobs, folder)
    return {name: _made(name, outcomes[name], app) for name in jobs}


def run(jobs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    ended = subprocess.run(
        [str(PYTHON), str(CLIENT), json.dumps(jobs)],
        cwd=folder,
        env=environment(HOME=str(folder)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}\n{ended.stderr[-4000:]}"
    return json.loads(ended.stdout)


def _made(name: str, outcome: Mapping[str, Any], app: ModelServer) -> Made:
    asked = [request for request in app.requests if request.headers["x-job"] == name]
    last = {document: one for document in DOCUMENTS for one in asked if f"Describe {document}." in one.body.decode()}
    return Made(outcome.get("rows", {}), outcome.get("error", ""), last)


def decoded(*data: str) -> list[bytes]:
    return [base64.b64decode(one) for one in data]


def times(request: Recorded, *data: str) -> list[int]:
    """How often each of these stands in the request, wherever."""
    return [request.body.decode().count(one) for one in data]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_three_rows_are_made_and_every_image_is_seen(made, originals, transport, api) -> None:
    job = made[f"{transport}, {api}"]
    assert list(job.rows) == DOCUMENTS, job.error
    for document, original in originals.items():
        request = job.requests[document]
        assert refusals(api, request.json) == ()
        assert [one.content for one in seen(api, request.json)] == decoded(original.chart, original.cover)
        assert times(request, original.chart, original.cover, original.pdf) == [1, 1, 0]
        assert job.rows[document].startswith("I see 2 images: image/png 960x600 "), job.rows[document]
        words = request.body.decode()
        assert re.search(rf"library://{document}/pdf, [^]]*application/pdf, [^]]*text of all pages", words)
        assert "[page 1 of " in words
        assert f"there is no document 'not {document}'" in words


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("way", ["one store", "only the proxy"])
def test_the_pdf_is_seen_as_well_where_the_proxy_has_its_bytes(made, originals, way, api) -> None:
    # Behind its handle in the store that both use; or in what Data Designer makes of a result that nobody has shaped.
    job = made[f"{way}, {api}"]
    assert list(job.rows) == DOCUMENTS, job.error
    for document, original in originals.items():
        request, media = job.requests[document], (original.chart, original.cover, original.pdf)
        assert refusals(api, request.json) == ()
        assert [one.content for one in seen(api, request.json)] == decoded(*media)
        assert times(request, *media) == [1, 1, 1]
        assert job.rows[document].startswith("I see 2 images, 1 document: "), job.rows[document]


@pytest.mark.parametrize("way", ["only the gateway", "neither"])
def test_without_the_proxy_chat_completions_refuses_the_images(made, way) -> None:
    job = made[f"{way}, openai_chat"]
    assert "Image URLs are only allowed for messages with role 'user'" in job.error
    assert not job.rows


def test_anthropic_takes_what_the_gateway_has_shaped(made, originals) -> None:
    job = made["only the gateway, anthropic_messages"]
    for document, original in originals.items():
        found = seen("anthropic_messages", job.requests[document].json)
        assert [one.content for one in found] == decoded(original.chart, original.cover)


def test_with_neither_the_embedded_picture_is_base64_in_a_text(made, originals) -> None:
    job = made["neither, anthropic_messages"]
    for document, original in originals.items():
        request = job.requests[document]
        assert [one.content for one in seen("anthropic_messages", request.json)] == decoded(original.chart)
        assert times(request, original.cover, original.pdf) == [1, 1]
