"""`python -m melee` is `melee`."""

from melee.cli import main

main()
