"""Requests to calibrate: over the control socket, and saved for gateways that start later."""

import math
import time

import pytest

from gateway.errors import InvalidRequest
from gateway.serving.control.pending_calibration import (
    LONGEST_SECONDS,
    answer,
    apply_pending_calibration,
    save_pending_calibration,
)


class Calibration:
    """Remembers what it was opened for."""

    def __init__(self):
        self.opened = []
        self.closed = 0

    def open(self, until, host=None):
        self.opened.append((until, host))

    def close(self):
        self.closed += 1

    def progress(self):
        return {"open": bool(self.opened), "hosts": []}


@pytest.fixture
def calibration():
    return Calibration()


def soon():
    return time.time() + 60


def test_it_is_opened_for_a_time_and_a_host_and_says_how_far_it_is(calibration):
    until = soon()
    assert answer(calibration, {"until": until, "host": "codex"}) == {"open": True, "hosts": []}
    assert answer(calibration, {"until": until, "host": None}) == {"open": True, "hosts": []}
    assert calibration.opened == [(until, "codex"), (until, None)]


def test_it_is_closed_when_that_is_said(calibration):
    answer(calibration, {"close": True, "until": soon()})
    assert (calibration.closed, calibration.opened) == (1, [])


@pytest.mark.parametrize("until", [None, "soon", True, math.nan, math.inf, 10**400, 0, -1, 1.0])
def test_without_a_time_that_is_to_come_it_is_refused(calibration, until):
    with pytest.raises(InvalidRequest):
        answer(calibration, {"until": until})
    assert calibration.opened == []


def test_a_request_is_valid_for_a_day_at_most(calibration):
    with pytest.raises(InvalidRequest):
        answer(calibration, {"until": time.time() + 2 * LONGEST_SECONDS})


def test_a_saved_request_is_applied(calibration, tmp_path):
    until = soon()
    path = save_pending_calibration(tmp_path, until, "codex")
    assert path.stat().st_mode & 0o077 == 0 or path.drive
    apply_pending_calibration(tmp_path, calibration)
    assert calibration.opened == [(until, "codex")]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"until": 1}', '{"until": "x", "host": 1}', "\x00\xff" * 5_000])
def test_an_invalid_or_expired_request_changes_nothing(calibration, tmp_path, text):
    save_pending_calibration(tmp_path, soon(), None).write_text(text, "latin-1")
    apply_pending_calibration(tmp_path, calibration)
    assert calibration.opened == []


def test_without_a_request_nothing_happens(calibration, tmp_path):
    apply_pending_calibration(tmp_path, calibration)
    apply_pending_calibration(tmp_path / "nowhere", calibration)
    assert calibration.opened == []
