"""The command `temporaldp`: parse, call public functions, render."""

from temporaldp.apps.cli.main import app, main

__all__ = ["app", "main"]
