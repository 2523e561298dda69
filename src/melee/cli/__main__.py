"""`python -m melee.cli` is `melee`."""

from melee.cli import main

main()
