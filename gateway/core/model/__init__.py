"""The frozen values that everything else speaks in: blocks, envelope, profile, notes, caller, effects."""
