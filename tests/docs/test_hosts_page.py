"""docs/hosts has every profile, with its evidence, and says of which hosts nothing is known."""

import re
from pathlib import Path

import pytest

from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.model.apps_extension import declares
from gateway.hosts.config_files.hosts import HOSTS as CONFIGURED
from gateway.hosts.simulators.hosts import SIMULATORS

HOSTS = Path(__file__).parents[2] / "docs" / "hosts"
TABLE = (HOSTS / "README.md").read_text("utf-8")
PAGE = (HOSTS / "evidence.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^##+ [^\n]* \(`([a-z0-9-]+)`\)\n(.*?)(?=^##+ |^<a |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_profile_has_a_section_and_every_host_a_row():
    profiles = builtin_profiles()
    variants = {variant for profile in profiles.values() for variant in profile.variants}
    assert set(SECTIONS) == set(profiles)
    assert {name for name in profiles if f"](evidence.md#{name}) |" in TABLE} == set(profiles) - variants
    assert all(f'<a id="{name}"></a>' in PAGE for name in set(profiles) - variants)


def test_a_host_of_which_nothing_is_known_is_said_to_be_one():
    assert "**Nothing is known" in SECTIONS["jetbrains-ai"]
    assert "| nothing |" in next(line for line in TABLE.splitlines() if "](evidence.md#jetbrains-ai) |" in line)
    assert "**Nothing is known" not in SECTIONS["codex"]


KNOWN = re.compile(r"measured with \S.*, on \d{4}-\d\d-\d\d|from source|reported")
README = (HOSTS.parents[1] / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(CONFIGURED))
def test_the_page_of_each_host_and_the_tables_say_alike_how_it_is_known(name):
    page = (HOSTS / f"{name}.md").read_text("utf-8")
    run = re.search(
        r"^The last \[run of the lab\]\(lab\.md\) was (with version [^,]+, on [0-9-]+)\.", page, re.MULTILINE
    )
    other = re.search(r"^This is (.+)\.$", page, re.MULTILINE)
    assert (run is None) != (other is None)
    said = other[1] if run is None else f"measured {run[1]}".replace("with version", "with")
    assert KNOWN.fullmatch(said)
    profile = CONFIGURED[name].profile or name
    rows = [line for line in (TABLE + README).splitlines() if f"evidence.md#{profile})" in line and line[0] == "|"]
    assert rows
    assert all(f" {said} |" in row for row in rows)


def test_which_hosts_show_pages_and_which_declare_the_extension_is_told_with_the_evidence():
    apps = (HOSTS.parent / "apps.md").read_text("utf-8")
    rows = {cells[2].strip(" `"): cells for line in apps.splitlines() if len(cells := line.split("|")) == 8}
    known = {name: tuple(cell.strip() for cell in cells[3:5]) for name, cells in rows.items()}
    assert known["claude-code"] == ("not shown", "no")
    assert known["cursor"] == ("in some sessions", "yes")
    assert known["goose"] == ("shown", "yes")
    assert known["vscode-copilot"] == ("shown", "no")
    assert known["qwen-code"] == ("not shown", "yes")
    assert known["librechat"] == ("in results", "?")
    for name, profile in builtin_profiles().items():
        if profile.name in known and profile.apps.shows is not None:
            assert "**, 20" in rows[name][6]
            assert re.search(
                rf"\]\(evidence.md#{name}\) \|.*\| ((not )?shown|in some sessions) \|$", TABLE, re.MULTILINE
            )


def test_what_a_host_was_measured_to_declare_its_simulator_declares():
    profiles = builtin_profiles()
    measured = {
        name: evidence.level == "measured"
        for name in SIMULATORS
        if name in profiles and (evidence := profiles[name].evidence.get("apps.declares"))
    }
    assert {"codex", "qwen-code"} <= {name for name, is_measured in measured.items() if is_measured}
    for name, is_measured in measured.items():
        if is_measured:
            assert declares(SIMULATORS[name].capabilities) == profiles[name].apps.declares, name


@pytest.mark.parametrize("name", ["codex", "qwen-code-text"])
def test_a_section_has_values_with_level_day_and_version(name):
    assert re.search(
        r"^\| `[a-z_.]+ = .*\| \*\*measured\*\*, \d{4}-\d\d-\d\d: .*\d+\.\d+", SECTIONS[name], re.MULTILINE
    )
