"""``python -m mixedals``: the command line."""

from mixedals.cli.app import main

main()
