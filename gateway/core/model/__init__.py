"""The frozen value types that the rest of the code uses: blocks, envelope, notes, caller, effects."""
