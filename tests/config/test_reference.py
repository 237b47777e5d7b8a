"""The reference that is written from the schema."""

from gateway.config.reference import describe_keys, describe_profile_keys
from gateway.core.profiles.host_profiles import PATHS


def test_every_table_and_key_is_in_the_reference():
    text = describe_keys()
    assert "## `[upstreams.<name>]`" in text
    assert "## `[[profiles.<name>.match]]`" in text
    assert "| `port` | whole number | `8484` |" in text
    assert '| `transport` | `"stdio"`, `"http"`, `"sse"`, `"auto"` | `"auto"` |' in text
    assert '| `include` | list of text | `["*"]` |' in text
    assert '| `max_message_bytes` | bytes | `"64MiB"` | Maximum size of a JSON-RPC message' in text
    assert "| `max_bytes_per_owner` | bytes |  | Maximum size of one" in text
    assert "| `call` | seconds | `300` | For a whole call, whatever" in text
    assert "| `call` | seconds |  | For a whole call of this tool" in text
    assert '| `level` | `"measured"`' in text
    assert "| required |" in text
    assert "## `[upstreams.<name>.auth.exchange]`" in text


def test_the_reference_is_well_formed():
    rows = [line for line in describe_keys().splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5}


def test_every_value_of_a_profile_is_in_the_reference():
    text = describe_profile_keys()
    assert all(f"| `{path}` |" in text for path in PATHS)
    assert "**`image`** Images." in text
