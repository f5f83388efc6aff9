"""Convert a diffprivlib mechanism: its geometric noise on a histogram, under a plan.

Requires the extra: python -m pip install '.[diffprivlib]' in a checkout.  Run with:  python examples/diffprivlib_histogram.py
"""

import numpy as np
from diffprivlib.mechanisms import Geometric

import temporaldp as tdp


def noisy_histogram(counts: np.ndarray, epsilon: float) -> list[int]:
    """Geometric noise on every count. Replacing one person's value moves two counts by 1: sensitivity 2."""
    noise = Geometric(epsilon=epsilon, sensitivity=tdp.counts.HISTOGRAM_SENSITIVITY)
    return [noise.randomise(int(count)) for count in counts]


def main() -> None:
    traces = tdp.load_sample()
    adversary = next(tdp.estimate_adversaries(traces))
    plan = tdp.plan_budget(adversary, alpha=1.0, horizon=traces.n_times)
    result = tdp.release.release_snapshots(noisy_histogram, traces.histogram(), plan)
    worst = tdp.temporal_leakage(adversary, result.epsilons).worst
    print(f"{len(result.outputs)} histograms released; worst leakage {worst:.4f} of {plan.alpha:g}")
    print("first step: true", traces.histogram()[0].tolist(), "released", result.outputs[0])


if __name__ == "__main__":
    main()
