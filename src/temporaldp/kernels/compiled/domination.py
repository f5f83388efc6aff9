"""Which of many profiles lie under another one."""

import numpy as np

from temporaldp.kernels.compiled.options import kernel


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


@kernel
def undominated(d, x, starts, order):
    """Numbers of the profiles that lie under no earlier one of `order` that is kept."""
    kept = np.empty(order.size, np.int64)
    size = 0
    for number in order:
        low, high = starts[number], starts[number + 1]
        under = False
        for k in range(size):
            other = slice(starts[kept[k]], starts[kept[k] + 1])
            if lies_under(d[low:high], x[low:high], d[other], x[other]):
                under = True
                # A profile that dominates one often dominates the next: look there first.
                kept[0], kept[k] = kept[k], kept[0]
                break
        if not under:
            kept[size] = number
            size += 1
    return np.sort(kept[:size])
