"""docs/hosts has every profile, with its evidence, and says of which hosts nothing is known."""

import re
from pathlib import Path

import pytest

from gateway.config.builtin_profiles import builtin_profiles

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


@pytest.mark.parametrize("name", ["codex", "qwen-code-text"])
def test_a_section_has_values_with_level_day_and_version(name):
    assert re.search(
        r"^\| `[a-z_.]+ = .*\| \*\*measured\*\*, \d{4}-\d\d-\d\d: .*\d+\.\d+", SECTIONS[name], re.MULTILINE
    )
