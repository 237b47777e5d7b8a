"""The console: pages that show every call, what it returned, and what each host's model makes of it."""
