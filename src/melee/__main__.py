"""`python -m melee`: the command line."""

from melee.cli import main

main()
