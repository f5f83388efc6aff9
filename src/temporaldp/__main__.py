"""``python -m temporaldp`` is the command `temporaldp`."""

import sys

from temporaldp.base.errors import MissingExtraError
from temporaldp.base.extras import needing


def main() -> None:
    """Run the command, or say what to install for it."""
    try:
        with needing("cli"):
            from temporaldp.apps.cli import main as command
    except MissingExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    command()


if __name__ == "__main__":
    main()
