"""Tools as hosts are offered them: names, schemas, arguments that take content, instructions."""
