"""Calibration: test blocks that a model is shown, and what is made of the codes that it could read."""

from gateway.routing.calibration.calibration import Calibration, Kept, Surroundings

__all__ = ["Calibration", "Kept", "Surroundings"]
