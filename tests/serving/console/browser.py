"""A gateway with its console as a process, and a browser without scripts that has entered it."""

import json
import re
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.telemetry.conftest import PATIENCE, Serving

FORM_TOKEN = re.compile(r'"X-Console-Token": "([0-9a-f]+)"')


class Browser:
    """The pages and the JSON of one console."""

    def __init__(self, gateway: Serving) -> None:
        address = gateway.line_with("console at ").partition("console at ")[2]
        self.client = httpx2.Client(trust_env=False, timeout=PATIENCE, follow_redirects=True)
        self.base = address.partition("/enter?")[0]
        page = self.client.get(address)
        assert page.status_code == 200, page.text
        token = FORM_TOKEN.search(page.text)
        assert token, page.text
        self.token = token[1]

    def close(self) -> None:
        """Leave."""
        self.client.close()

    def page(self, path: str) -> str:
        """The HTML of a page."""
        answer = self.client.get(self.base + path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def json(self, path: str, status: int = 200) -> Any:
        """The JSON of a view."""
        answer = self.client.get(f"{self.base}/api{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, path: str, form: dict[str, Any] | None = None, status: int = 200) -> Any:
        """The JSON of an action."""
        answer = self.client.post(f"{self.base}/api{path}", data=form, headers={"X-Console-Token": self.token})
        assert answer.status_code == status, answer.text
        return answer.json()

    def part(self, path: str, form: dict[str, Any] | None = None) -> str:
        """The HTML that an action puts into its page."""
        headers = {"X-Console-Token": self.token, "HX-Request": "true"}
        answer = self.client.post(self.base + path, data=form, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.text

    def change(self, **form: Any) -> Any:
        """Look at a change of the configuration, and write it."""
        shown = self.post("/changes/show", form)
        return self.post("/changes/write", {**form, "mark": shown["mark"]})


def with_hosts_of(folder: Path, servers: dict[str, Any]) -> None:
    """Give the user of this home folder a Claude Code with these servers."""
    (folder / ".claude.json").write_text(json.dumps({"mcpServers": servers}))


@contextmanager
def opened(config: Path, text: str) -> Generator[Browser]:
    """Run a gateway with this configuration, and enter its console."""
    config.write_text(text, "utf-8")
    gateway = Serving(config, "--console")
    try:
        with closing(Browser(gateway)) as browser:
            yield browser
    finally:
        gateway.process.kill()
        gateway.process.wait()
