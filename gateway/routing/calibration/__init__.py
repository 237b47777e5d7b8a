"""Calibration: test blocks that a model is shown, and what is made of the codes that it could read."""

from gateway.routing.calibration.calibration import Calibration, HostWorkspace, KeptProfile

__all__ = ["Calibration", "HostWorkspace", "KeptProfile"]
