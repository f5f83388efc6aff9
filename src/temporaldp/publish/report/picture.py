"""A figure that notebooks display."""

from __future__ import annotations

from temporaldp.base.extras import needing
from temporaldp.publish.report.style import figure_png

with needing("report"):
    from matplotlib.figure import Figure


class Picture(Figure):
    """A Matplotlib figure outside of pyplot; a notebook displays it if it is the last value of a cell."""

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG for a notebook."""
        return figure_png(self, dpi=100)
