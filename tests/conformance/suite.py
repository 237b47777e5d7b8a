"""Running the official conformance suite, and reading what it writes."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = Path("@modelcontextprotocol/conformance")
NODE = 22
PATIENCE = 120
"""Seconds for one run of the suite; a client has half as long."""
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")
"""What the suite appends to a scenario's name, for the folder of its results."""

CLIENT_SCENARIOS: dict[str, tuple[str, ...]] = {
    "2025-11-25": (
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ),
    "2026-07-28": (
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ),
}
"""The client scenarios by the revision that the suite's server speaks, without those of OAuth."""

EXTENSION_SCENARIOS = ("sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory")
"""The server scenarios of skills, which belong to no revision."""

SKILL_CLIENT_SCENARIOS = (
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
)
"""The client scenarios of skills."""

TASK_SCENARIOS = (
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
)
"""The server scenarios of tasks (SEP-2663), without the one that the suite itself always skips."""

EXTENSIONS = "extensions"
"""Stands for a revision: the scenarios of extensions belong to none."""

_SINCE_2025_11_25 = (
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "basic-cimd",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
)

OAUTH_SCENARIOS: dict[str, tuple[str, ...]] = {
    "2025-03-26": ("2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"),
    "2025-11-25": _SINCE_2025_11_25,
    "2026-07-28": (
        *_SINCE_2025_11_25,
        "resource-mismatch",
        "offline-access-scope",
        "offline-access-not-supported",
        "authorization-server-migration",
        "iss-supported",
        "iss-not-advertised",
        "iss-supported-missing",
        "iss-wrong-issuer",
        "iss-unexpected",
        "iss-normalized",
        "metadata-issuer-mismatch",
    ),
    EXTENSIONS: (
        "client-credentials-jwt",
        "client-credentials-basic",
        "enterprise-managed-authorization",
        "dpop",
        "dpop-nonce",
        "wif-jwt-bearer",
    ),
}
"""The client scenarios of OAuth (`auth/*`), by revision."""


class Broken(Exception):
    """The suite itself did not do its work."""


@dataclass(frozen=True)
class Check:
    """One thing that the suite has looked at. Some ids stand for several: the name tells them apart."""

    scenario: str
    id: str
    name: str
    status: str
    message: str = ""


@dataclass(frozen=True)
class Suite:
    """An installed suite."""

    folder: Path
    clients: Path | None = None
    """Where clients wait to be used (`waiting_clients`); without, each is started."""

    @classmethod
    def of(cls, node_modules: Path, clients: Path | None = None) -> "Suite":
        """The suite among these npm packages, with these clients.

        Raises:
            Broken: it is not there, or what would run it is not.
        """
        if (found := _node()) < NODE:
            raise Broken(f"the suite needs Node {NODE} or newer, and `node` is {found or 'missing'}: run `make setup`")
        if not (node_modules / PACKAGE / "package.json").exists():
            raise Broken(f"npm's {PACKAGE} is not in {node_modules}: run `make setup` with the npm registry in reach")
        return cls(node_modules / PACKAGE, clients)

    @property
    def version(self) -> str:
        return json.loads((self.folder / "package.json").read_text("utf-8"))["version"]

    def server(self, url: str, era: str) -> list[Check]:
        """What all server scenarios of this revision find at `url`, and those of extensions."""
        found = self._run("server", "--url", url, "--suite", "all", "--spec-version", era)
        for scenario in EXTENSION_SCENARIOS:
            found += self.extension(url, scenario, era)
        return found

    def extension(self, url: str, scenario: str, era: str) -> list[Check]:
        """What one scenario of an extension finds at `url`."""
        return self._run("server", "--url", url, "--scenario", scenario, "--spec-version", era, "--force")

    def client(self, scenario: str, era: str, *options: str) -> list[Check]:
        """What one client scenario finds about `client.py`, called with these options."""
        return self._client("tests.conformance.client", scenario, era, *options)

    def oauth(self, scenario: str, era: str) -> list[Check]:
        """What one OAuth scenario finds about the gateway as a client (`oauth_client.py`)."""
        return self._client("tests.conformance.oauth_client", f"auth/{scenario}", era)

    def _client(self, module: str, scenario: str, era: str, *options: str) -> list[Check]:
        # The suite splits the command at its spaces, and gives the parts to a shell.
        command = shlex.join([*self._starting(module), *options])
        environ = {"PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1,localhost"}
        revision = () if era == EXTENSIONS else ("--spec-version", era)
        arguments = ("--command", command, "--timeout", str(PATIENCE * 500), "--scenario", scenario, *revision)
        return self._run("client", *arguments, environ=environ)

    def _starting(self, module: str) -> list[str]:
        if self.clients is None:
            return [sys.executable, "-m", module]
        # Isolated and without site-packages: this program needs only the standard library.
        return [sys.executable, "-I", "-S", str(HERE / "hand_over.py"), str(self.clients), module]

    def _run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> list[Check]:
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            command = ["node", str(self.folder / "dist" / "index.js"), *arguments, "--output-dir", folder]
            # Compiling the suite is a fifth of a run of it.
            compiled = {"NODE_COMPILE_CACHE": str(self.folder.parents[1] / ".cache" / "conformance")}
            said = _run(command, {**os.environ, **compiled, **(environ or {})})
            checks = read(Path(folder))
        if not checks:
            raise Broken(f"{' '.join(arguments)}: no results\n{said[-600:]}")
        return checks


def _node() -> int:
    """The major version of the `node` on the PATH; 0 where there is none."""
    if shutil.which("node") is None:
        return 0
    said = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True).stdout
    return int(said.removeprefix("v").split(".")[0])


def _run(command: list[str], environ: Mapping[str, str]) -> str:
    """Run it, and give what it has said. One that takes too long is ended: what it has not written is missing."""
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    ) as process:
        try:
            return process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0]


def read(folder: Path) -> list[Check]:
    """The results in a folder that the suite has written. What it only mentions (`INFO`) is no check.

    A scenario that broke off has written nothing, so all its checks are missing.
    """
    found: list[Check] = []
    for path in sorted(folder.glob("**/checks.json")):
        scenario = STAMP.sub("", path.parent.name).removeprefix("server-")
        found += [_check(scenario, check) for check in json.loads(path.read_text("utf-8")) if check["status"] != "INFO"]
    return found


def _check(scenario: str, check: Mapping[str, Any]) -> Check:
    message = check.get("errorMessage") or ""
    return Check(scenario, check["id"], check["name"], check["status"], message)
