"""Tools described to model APIs: their input schemas in the forms that the APIs take."""
