"""The command line: thin, quick to answer, and it never shows a traceback for bad input."""

import sys

from melee.cli import benchmark, compiling, logs, playing, training  # noqa: F401 - they register their commands
from melee.cli.app import app
from melee.errors import MeleeError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; errors of the MELEE family become one sentence and exit code 2."""
    try:
        app()
    except MeleeError as error:
        print(f"melee: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("melee: interrupted", file=sys.stderr)
        sys.exit(130)
