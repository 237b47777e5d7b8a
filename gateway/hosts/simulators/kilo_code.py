"""Kilo Code, CLI 7.7.7, on three kinds of model API, measured (2026-11-27): a fork of opencode, with the same cells."""

from functools import partial

from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.opencode import Traits, see
from gateway.hosts.simulators.results import PDF
from gateway.hosts.simulators.seen import Where


def _host(name: str, title: str, where: Where) -> SimulatedHost:
    # Measured: initialize at 2025-11-25; roots. It says nothing of the model or its API.
    return SimulatedHost(
        name=name,
        title=title,
        client_info={"name": "kilo", "version": "7.7.7"},
        revision="2025-11-25",
        capabilities={"roots": {}},
        see=partial(see, Traits(where)),
        shows=RASTER | {PDF},
    )


KILO_CODE = _host("kilo-code", "Kilo Code", "in the result")
"""With Anthropic's API and OpenAI's Responses API: the same cells."""
KILO_CODE_COMPAT = _host("kilo-code-compat", "Kilo Code, OpenAI-compatible API", "beside it")
