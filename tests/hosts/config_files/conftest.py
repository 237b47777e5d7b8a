"""What the tests of registration share: a user's place on a machine, and copies of hosts' real files."""

from pathlib import Path

import pytest

from gateway.hosts.config_files.documents import Document
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.launch_command import Launch
from gateway.hosts.config_files.machine import Machine

FILES = Path(__file__).parent / "files"


@pytest.fixture
def sample():
    """A host's file as it really looks, as a document."""

    def document(host: str) -> Document:
        syntax = HOSTS[host].syntax
        file = FILES / f"{host}.{syntax}"
        return Document(file.read_text("utf-8"), syntax, "FILE")

    return document


@pytest.fixture
def at():
    """A place on a Linux machine; what is given differs."""

    def place(**changed) -> Machine:
        return Machine(**{"platform": "linux", "home": "/home/me", "cwd": "/work", "environ": {}, **changed})

    return place


@pytest.fixture
def launch() -> Launch:
    return Launch("/venv/bin/mcp-gateway", ("serve", "--config", "/etc/mcp-gateway.toml"), {"PATH": "/usr/bin:/bin"})
