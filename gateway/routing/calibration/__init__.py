"""Calibration: show a model test blocks with codes, and derive its host's profile from the codes that it could read."""

from gateway.routing.calibration.calibration import Calibration, HostWorkspace, KeptProfile

__all__ = ["Calibration", "HostWorkspace", "KeptProfile"]
