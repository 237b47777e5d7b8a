"""Host and model profiles: their types, inheritance, and the choice between them."""
