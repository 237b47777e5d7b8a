"""Host and model profiles: their types, inheritance, and how one is chosen."""
