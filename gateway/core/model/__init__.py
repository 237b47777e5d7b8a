"""The frozen values that everything else speaks in: blocks, envelope, notes, caller, effects."""
