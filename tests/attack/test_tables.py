"""Results of very many small values: whoever asks for such a table may wait, and nobody else."""

import json
from typing import Any

import pytest

TABLES = """
import json, sys

TABLES = {
    "records": {"rows": [{"id": at, "name": "n%d" % at, "value": at * 1.5, "ok": True} for at in range(130_000)]},
    "brackets": {"rows": [[]] * 2_500_000},
    "numbers": {"rows": [[7] * 100] * 40_000},
    "blocks": {},
}
TEXTS = {**dict.fromkeys(TABLES, "a table"), "records": json.dumps(TABLES["records"])}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    if message["method"] == "initialize":
        server = {"name": "tables", "version": "1"}
        revision = message["params"]["protocolVersion"]
        result = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TABLES]}
    else:
        name = message["params"]["name"]
        result = {"content": [{"type": "text", "text": TEXTS[name]}], "structuredContent": TABLES[name]}
        if name == "blocks":
            result = {"content": [{"type": "text", "text": "a"}] * 250_000}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, separators=(",", ":")), flush=True)
"""


@pytest.mark.parametrize(("profile", "modern"), [("somebody", False), ("inspector", True)])
def test_a_large_table_keeps_only_its_own_caller_waiting(attacked: Any, profile: str, modern: bool) -> None:
    gateway = attacked({"tables": TABLES})
    host = gateway.client(profile, modern=modern)
    for table in ("records", "brackets", "numbers", "blocks"):
        with gateway.watched(f"{table} for {profile}") as others:
            result = host.call(f"tables__{table}")
        assert result.get("content"), json.dumps(result)[:500]
        assert not others.failures
        assert others.longest < 5
        assert others.growth < 600 * 2**20
    host.close()
