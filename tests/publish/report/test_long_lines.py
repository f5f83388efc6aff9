"""A long line is drawn by fewer points than it has, and loses none of its extremes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from temporaldp.publish.report.style import figure_style, figure_svg, new_figure


def drawn(values):
    """Points of the line in the SVG file, as shares of its width and of its height."""
    with figure_style():
        figure, axes = new_figure(3.6)
        axes.plot(values)
        axes.set(xlim=(0, len(values) - 1), ylim=(-1.0, 1.0))
        axes.set_axis_off()
        picture = figure_svg(figure)
        low, high = axes.get_window_extent().transformed(figure.dpi_scale_trans.inverted()).get_points() * 72.0
    path = max(re.findall(rb' d="([^"]+)"', picture), key=len).decode()
    points = np.array(re.findall(r"[ML] (\S+) (\S+)", path), dtype=float)
    points[:, 1] = 3.6 * 72.0 - points[:, 1]
    return (points - low) / (high - low)


@pytest.mark.parametrize("n", [200, 10_007, 500_000])
def test_thinned_line_keeps_its_ends_and_peaks(n):
    rng = np.random.default_rng(n)
    for step, height in zip(rng.integers(1, n - 1, 6).tolist(), [-1.0, 1.0] * 3, strict=True):
        values = np.zeros(n)
        values[step] = height
        points = drawn(values)
        peak = points[np.argmax(np.abs(points[:, 1] - 0.5))]
        assert peak == pytest.approx([step / (n - 1), 0.5 + 0.5 * height], abs=2e-3)
        assert points[[0, -1], 0] == pytest.approx([0.0, 1.0], abs=2e-3)


@pytest.mark.parametrize("n", [10_007, 500_000])
def test_thinned_line_has_few_points_and_covers_every_stretch(n):
    points = drawn(np.random.default_rng(n).uniform(-1.0, 1.0, n))
    assert len(points) < 6_000
    assert np.diff(points[:, 0]).max() < 2e-3
