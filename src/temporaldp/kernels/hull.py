"""The upper concave hull of a profile's points, in coordinates that keep their digits.

Notation
--------
d    Pr(S | other_state), the abscissa
x    q - d, the ordinate. The shear (d, q) -> (d, q - d) maps hulls to hulls and slopes g to g - 1, and its differences do
     not cancel where rows are nearly equal.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.compilation import kernel
from temporaldp.values import ULP, FloatArray

Point: TypeAlias = tuple[float, float, int]
"""d, x and the index of a point."""


def upper_hull(d: FloatArray, x: FloatArray) -> NDArray[np.intp]:
    """Indices of the hull's vertices with slope x / d > 0 on their left, by increasing d; (0, 0) is implied."""
    order = np.lexsort((-x, d))
    rising = x[order] > np.concatenate(([0.0], np.maximum.accumulate(x[order])))[:-1]
    chain: list[Point] = [(0.0, 0.0, -1)]
    for index in order[rising]:
        point = float(d[index]), float(x[index]), int(index)
        if point[0] == 0.0:  # there is one such at most: the hull starts there, not at the origin
            chain = [point]
            continue
        while len(chain) > 1 and chain[-1][1] <= _height(chain[-2], point, chain[-1][0]):
            chain.pop()
        chain.append(point)
    return np.array([index for _, _, index in _without_ties(chain) if index >= 0], dtype=np.intp)


def _height(left: Point, right: Point, at: float) -> float:
    """The line through two points."""
    return left[1] + (right[1] - left[1]) * ((at - left[0]) / (right[0] - left[0]))


def _without_ties(chain: list[Point]) -> list[Point]:
    """The hull without vertices that rise above the line between their remaining neighbours by no more than rounding.

    A vertex goes only if all that went between the same two neighbours lie that close to their line: errors do not add up.
    """
    kept, start = chain[:1], 0
    for end in range(1, len(chain)):
        following = chain[end + 1] if end + 1 < len(chain) else (2.0, chain[-1][1], -1)  # level from the last one on
        between = chain[start + 1 : end + 1]
        # Relative height by which a point must rise above the hull without it. Ties in exact arithmetic differ by a few
        # roundings; a point dropped as tied would change the loss by less than that same relative amount
        if any(point[1] > _height(chain[start], following, point[0]) * (1.0 + 8.0 * ULP) for point in between):
            kept.append(chain[end])
            start = end
    return kept


@kernel
def lies_under(d, x, hull_d, hull_x):
    """Whether no point (d, x) rises above the hull; both by rising d. The hull starts at (0, 0)."""
    right = 0
    for v in range(d.size):
        while right < hull_d.size and hull_d[right] < d[v]:
            right += 1
        if right == hull_d.size:
            height = hull_x[right - 1] if right else 0.0
        elif hull_d[right] == d[v]:
            height = hull_x[right]
        else:
            left_d, left_x = (hull_d[right - 1], hull_x[right - 1]) if right else (0.0, 0.0)
            height = left_x + (hull_x[right] - left_x) * ((d[v] - left_d) / (hull_d[right] - left_d))
        if x[v] > height:
            return False
    return True
