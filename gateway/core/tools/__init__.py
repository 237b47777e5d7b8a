"""Tools as offered to hosts: names, schemas, arguments that take content, instructions."""
