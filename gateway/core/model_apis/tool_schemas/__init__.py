"""Describing tools to model APIs: their input schemas in the forms that the APIs accept."""
