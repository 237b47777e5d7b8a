"""Several processes that serve one port on one machine (`serve --workers`): a supervisor, and the workers it starts."""
