"""``python -m temporaldp`` is the command `temporaldp`."""

from temporaldp.cli import main

main()
