"""What `doctor` says of the skills of upstreams, with real servers on stdio."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.diagnosis.skills import check_skills
from gateway.config.upstream_settings import UpstreamSettings
from gateway.upstream import Upstreams

pytestmark = pytest.mark.anyio

SERVER = """
import json, sys
FILES, ENTRIES = json.load(open(sys.argv[1]))
EXTENSION = {"extensions": {"io.modelcontextprotocol/skills": {}}, "resources": {}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params") or {}
    answer = {"error": {"code": -32601, "message": "Method not found"}}
    if method == "initialize":
        info = {"name": "skilled", "version": "1"}
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": EXTENSION, "serverInfo": info}}
    elif method == "resources/list":
        answer = {"result": {"resources": []}}
    elif method == "skills/list" and ENTRIES is not None:
        start = int(params.get("cursor", 0))
        more = {"nextCursor": str(start + 1)} if start + 1 < len(ENTRIES) else {}
        answer = {"result": {"skills": ENTRIES[start : start + 1], **more}}
    elif method == "resources/read":
        text = FILES.get(params["uri"])
        answer = {"error": {"code": -32602, "message": "no such file"}}
        if text is not None:
            answer = {"result": {"contents": [{"uri": params["uri"], "text": text}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def skill(name: str, **files: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The files of a sound skill, and its entry."""
    root = f"skill://{name}"
    front = {"name": name, "description": "about it"}
    about = f"---\nname: {name}\ndescription: about it\n---\n# {name}"
    texts = {f"{root}/SKILL.md": about, **{f"{root}/{file}": text for file, text in files.items()}}
    described = [
        {"uri": uri, "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", "size": len(text.encode())}
        for uri, text in texts.items()
    ]
    return texts, {"uri": f"{root}/SKILL.md", "frontmatter": front, "resources": described}


async def said(folder: Path, **servers: Any) -> dict[str, list[tuple[str, str]]]:
    (folder / "server.py").write_text(SERVER, "utf-8")
    settings: dict[str, UpstreamSettings] = {}
    for name, content in servers.items():
        (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")
        arguments = (str(folder / "server.py"), str(folder / f"{name}.json"))
        settings[name] = UpstreamSettings(command=sys.executable, args=arguments)
    async with Upstreams(settings, on_change=lambda *_: None) as upstreams:
        for upstream in upstreams.values():
            assert await upstream.ready(60)
        found = await check_skills(upstreams)
    return {name: [(each.level, each.text) for each in results] for name, results in found.items()}


async def test_sound_skills_are_counted_and_equal_names_told(tmp_path: Path):
    one, one_entry = skill("refunds", GUIDE="be kind")
    two, two_entry = skill("billing")
    found = await said(tmp_path, shop=[one | two, [one_entry, two_entry]], other=[one, [one_entry]])
    assert found["shop"] == [("ok", "2 skills, whose files are what they are said to be")]
    assert found["other"][0] == ("ok", "1 skill, whose files are what they are said to be")
    level, text = found["other"][1]
    assert (level, "shop, other each have a skill 'refunds'" in text) == ("warning", True)


async def test_each_fault_is_named(tmp_path: Path):
    files, entry = skill("refunds", GUIDE="be kind", GONE="was here")
    files["skill://refunds/GUIDE"] = "be rude"
    del files["skill://refunds/GONE"]
    odd = {"uri": "skill://odd/SKILL.md", "frontmatter": {"name": "other", "description": "x"}}
    found = await said(tmp_path, shop=[files, [entry, odd, 3]], mute=[{}, None])
    texts = dict(found["shop"])
    assert [level for level, _ in found["shop"]] == ["problem", "problem", "warning", "warning"], texts
    told = "\n".join(text for _, text in found["shop"])
    assert "skill://refunds/GUIDE has another size or digest" in told
    assert "skill://refunds/GONE of a skill cannot be read" in told
    assert "skill://odd/SKILL.md is withheld from hosts: its directory does not have the name" in told
    assert [(level, "cannot be listed" in text) for level, text in found["mute"]] == [("problem", True)]
