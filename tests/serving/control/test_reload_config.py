"""A configuration that is refused, for whatever reason, is told by `status` until another is applied."""

import pytest

from gateway.config.schema import Settings
from gateway.config.settings_diff import Difference
from gateway.errors import ConfigError
from gateway.serving.control.reload_config import Reloader


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (ConfigError("no such key"), "no such key"),
        (ValueError("s3cr3t-canary"), "an internal error of the gateway: ValueError"),
    ],
)
@pytest.mark.anyio
async def test_every_refusal_is_a_problem_until_a_configuration_is_applied(error, problem):
    failures = [error]

    def load() -> Settings:
        if failures:
            raise failures.pop()
        return Settings()

    reloader = Reloader(load, lambda _: Difference())
    await reloader.reload_quietly()
    assert reloader.problem == problem
    await reloader.reload()
    assert reloader.problem is None


@pytest.mark.anyio
async def test_settings_that_cannot_be_applied_are_a_problem():
    def apply(settings: Settings) -> Difference:
        raise RuntimeError("s3cr3t-canary")

    reloader = Reloader(Settings, apply)
    with pytest.raises(RuntimeError):
        await reloader.reload()
    assert reloader.problem == "an internal error of the gateway: RuntimeError"
