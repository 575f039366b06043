"""The command line, ``mixedals``: one module a command."""
