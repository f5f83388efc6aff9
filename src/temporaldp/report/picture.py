"""A figure that notebooks show by itself."""

from __future__ import annotations

import io

from temporaldp.extras import needing
from temporaldp.report.style import figure_style

with needing("report"):
    from matplotlib.figure import Figure


class Picture(Figure):
    """A Matplotlib figure outside of pyplot: a notebook shows it where it is the last value of a cell, once."""

    def _repr_png_(self) -> bytes:
        """What a notebook asks for."""
        buffer = io.BytesIO()
        with figure_style():
            self.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()
