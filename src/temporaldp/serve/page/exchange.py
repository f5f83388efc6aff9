"""How the server and the process beside it speak: pickles, each after its length."""

from __future__ import annotations

import struct

HEAD = struct.Struct("!Q")
"""The length of what follows."""


TOO_MUCH = "this takes more memory than the page may use: the command line computes it"


class FaultError(Exception):
    """A fault of the library, by its name alone: what it says may hold data, which the server must not log."""
