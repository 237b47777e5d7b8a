"""The table of docs/proxy.md: how real clients' pictures arrive at each API, without the proxy and with it."""

import json
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "matrix"
"""Written by tests/serving/model_proxy/test_matrix.py: client, API, form, and the words for the outcome."""
ROOT = FOLDER.parents[1]

APIS = {
    "openai_chat": "OpenAI Chat",
    "openai_chat_newer": "OpenAI Chat, from GPT-5.2 on",
    "llama_cpp": "llama-server",
    "openai_responses": "OpenAI Responses",
    "anthropic_messages": "Anthropic",
    "gemini": "Gemini 3",
    "gemini_2_5": "Gemini 2.5",
    "ollama": "Ollama",
}
CLIENTS = {
    # file: title, the lock and the package that tell its version
    "openai": ("openai", "requirements/dev.txt", "openai"),
    "anthropic": ("anthropic", "requirements/dev.txt", "anthropic"),
    "google_genai": ("google-genai", "requirements/dev.txt", "google-genai"),
    "ollama": ("ollama", "requirements/dev.txt", "ollama"),
    "langchain": ("LangChain, langchain-core", "requirements/old-clients.txt", "langchain-core"),
    "ai_sdk": ("AI SDK, ai", "package-lock.json", "ai"),
    "recorded": ("as recorded", None, None),
}
LEGEND = """| word | |
|---|---|
| seen | the model sees the picture, once, without base64 text beside it |
| refused | the API answers 400 |
| text | the API accepts it: base64 as text, and no picture that the model sees |
| lost | the API accepts it, but does not show the model the picture |
"""


def matrix_table() -> str:
    """Return the legend, and a row for each client and form."""
    lines = [LEGEND, f"| client | what it sends | {' | '.join(APIS.values())} |", f"|{'---|' * (len(APIS) + 2)}"]
    for client, (title, lock, package) in CLIENTS.items():
        found = json.loads((FOLDER / f"{client}.json").read_text("utf-8"))
        named = f"{title} {_version(ROOT / lock, package)}" if lock and package else title
        for form in dict.fromkeys(form for forms in found.values() for form in forms):
            cells = (_cell(found.get(api, {}).get(form)) for api in APIS)
            lines.append(f"| {named} | {form} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(row: dict[str, str] | None) -> str:
    if row is None:
        return ""
    return " → ".join(_both(row[place], row.get(f"{place}, streamed")) for place in ("before", "after"))


def _both(whole: str, streamed: str | None) -> str:
    return whole if streamed in (None, whole) else f"{whole} (streamed: {streamed})"


def _version(lock: Path, package: str) -> str:
    text = lock.read_text("utf-8")
    if lock.suffix == ".json":
        return json.loads(text)["packages"][f"node_modules/{package}"]["version"]
    found = re.search(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    assert found, f"{package} is not in {lock.name}"
    return found[1]
