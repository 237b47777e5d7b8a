"""A configuration that is refused, for whatever reason, is told by `status` until another is applied."""

from dataclasses import replace

import pytest

from gateway.cli.controlled_gateway import Start
from gateway.config.load_settings import LoadedSettings
from gateway.config.schema import Settings
from gateway.config.settings_diff import Difference
from gateway.errors import ConfigError, GatewayError, ProfileError
from gateway.serving.control.reload_config import Reloader


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (ConfigError("no such key"), "no such key"),
        (ValueError("s3cr3t-canary"), "an internal error of the gateway: ValueError"),
    ],
)
@pytest.mark.anyio
async def test_every_refusal_is_a_problem_until_a_configuration_is_applied(error, problem, caplog):
    caplog.set_level("INFO")
    failures = [error]

    def load() -> Settings:
        if failures:
            raise failures.pop()
        return Settings()

    reloader = Reloader(load, lambda _: Difference())
    await reloader.reload_quietly()
    assert reloader.problem == problem
    for _ in range(2):
        await reloader.reload()
    assert reloader.problem is None
    corrected = [record.message for record in caplog.records if "is corrected" in record.message]
    assert corrected == ["the configuration is corrected; nothing in it differs from the one in force"]


@pytest.mark.anyio
async def test_settings_that_cannot_be_applied_are_a_problem():
    def apply(settings: Settings) -> Difference:
        raise RuntimeError("s3cr3t-canary")

    reloader = Reloader(Settings, apply)
    with pytest.raises(RuntimeError):
        await reloader.reload()
    assert reloader.problem == "an internal error of the gateway: RuntimeError"


@pytest.mark.parametrize("where", ["loaded", "applied"])
@pytest.mark.anyio
async def test_whatever_is_wrong_whoever_was_removed_stays_out(where):
    """A configuration may be refused when it is read, or only when it is applied, such as for a profile."""
    heard: list[str] = []
    told: list[tuple[list[str], str | None]] = []

    def load() -> Settings:
        if where == "loaded":
            raise ConfigError("no such key")
        return Settings()

    def apply(settings: Settings) -> Difference:
        raise ProfileError("no such profile")

    async def refused() -> None:
        heard.append("refused")

    reloader = Reloader(load, apply, refused, lambda changes, problem: told.append((list(changes), problem)))
    with pytest.raises(GatewayError):
        await reloader.reload()
    assert heard == ["refused"]
    assert told == [([], "no such key" if where == "loaded" else "no such profile")]


@pytest.mark.anyio
async def test_a_file_that_cannot_be_used_is_shown_as_it_is_written(tmp_path):
    path = tmp_path / "mcp-gateway.toml"
    path.write_text("[access.tokens.alice]\nhash = 'x'\n[nonsense]\n", "utf-8")
    shown: list[object] = []
    loaded = LoadedSettings(Settings(), path)
    start = replace(Start.of(loaded, None, lambda settings: settings), on_refused=shown.append)
    await start.refused()
    assert shown == [{"access": {"tokens": {"alice": {"hash": "x"}}}, "nonsense": {}}]
    path.write_text("this is no TOML", "utf-8")
    await start.refused()
    assert len(shown) == 1


@pytest.mark.anyio
async def test_changes_are_told():
    told: list[tuple[list[str], str | None]] = []
    difference = Difference(added=("docs",))
    reloader = Reloader(
        Settings, lambda _: difference, None, lambda changes, problem: told.append((list(changes), problem))
    )
    await reloader.reload()
    assert told == [(["upstream docs added"], None)]
