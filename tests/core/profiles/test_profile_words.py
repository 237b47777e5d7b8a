"""What profiles say in a few words."""

import pytest

from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.profiles.host_profiles import PATHS, value_at
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_words import clients, own_paths, value_words, words_at


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "no limit"),
        (True, "true"),
        (1_000_000, "1,000,000"),
        ("a", '"a"'),
        (("a", 1), '["a", 1]'),
        ({"a": {"b": False}}, '{ "a" = { "b" = false } }'),
    ],
)
def test_values_are_written_as_in_toml(value: object, words: str) -> None:
    assert value_words(value) == words


def test_what_is_not_known_of_a_host_is_not_called_a_limit() -> None:
    assert words_at(Profile(name="x"), "apps.shows") == "not known"
    assert words_at(Profile(name="x"), "image.max_edge") == "no limit"


def test_own_paths_are_those_whose_values_or_evidence_are_not_inherited() -> None:
    profiles = builtin_profiles()
    for profile in profiles.values():
        own = own_paths(profile, profiles, PATHS)
        for path in set(PATHS) - set(own):
            if profile.lineage:
                parent = profiles[profile.lineage[0]]
                assert value_at(profile, path) == value_at(parent, path)
                assert profile.evidence.get(path) == parent.evidence.get(path)
    assert "text.merge" in own_paths(profiles["claude-code"], profiles, PATHS)


def test_a_variant_is_for_its_host_with_a_model() -> None:
    profiles = builtin_profiles()
    host = next(profile for profile in profiles.values() if any(profile.variants.values()))
    variant, models = next((name, models) for name, models in host.variants.items() if models)
    assert clients(profiles[variant], profiles) == [f"{host.name} with the model {' or '.join(models)}"]
