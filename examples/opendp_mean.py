"""Convert an OpenDP measurement: the mean of a bounded quantity per step, under a plan for its correlation.

Run with:  python examples/opendp_mean.py
"""

from typing import Any

import numpy as np
import opendp.prelude as dp

import temporaldp as tdp

PEOPLE, STEPS, LEVELS = 500, 24, 10

dp.enable_features("contrib")


class BoundedSum:
    """Sum of smart-meter levels, clamped to 0..9, with discrete Laplace noise: a person's level changes by at most 9."""

    def measurement(self, epsilon: float) -> Any:
        """OpenDP's measurement whose map grants at most epsilon for a change of 9."""
        space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
        scale = (LEVELS - 1) / epsilon
        made: Any = dp.m.make_laplace(*space, scale=scale)
        while made.map(LEVELS - 1) > epsilon:
            scale = float(np.nextafter(scale, np.inf))
            made = dp.m.make_laplace(*space, scale=scale)
        return made

    def epsilon_spent(self, epsilon: float) -> float:
        """Return the budget that the privacy map gives, not the requested one."""
        return float(self.measurement(epsilon).map(LEVELS - 1))

    def __call__(self, levels: np.ndarray, epsilon: float) -> float:
        return float(self.measurement(epsilon)(int(levels.clip(0, LEVELS - 1).sum()))) / PEOPLE


def main() -> None:
    # Consumption moves up and down a ladder of levels; an adversary knows how.
    ladder = np.eye(LEVELS) * 2 + np.eye(LEVELS, k=1) + np.eye(LEVELS, k=-1) + 0.05
    forward = tdp.TransitionMatrix(ladder / ladder.sum(axis=1, keepdims=True))
    adversary = tdp.Adversary.from_forward(forward, initial=forward.stationary_distribution())
    plan = tdp.plan_budget(adversary, alpha=2.0, horizon=STEPS)

    rng = np.random.default_rng(1)
    levels = rng.integers(0, LEVELS, PEOPLE)
    days = []
    for _ in range(STEPS):
        days.append(levels)
        levels = np.array([rng.choice(LEVELS, p=forward.dense()[level]) for level in levels])

    result = tdp.release.release_snapshots(BoundedSum(), days, plan)
    worst = tdp.temporal_leakage(adversary, result.epsilons).worst
    print(f"spent {result.epsilons.min():.4f} to {result.epsilons.max():.4f} a step; worst leakage {worst:.4f} of 2")
    for step in (0, STEPS // 2, STEPS - 1):
        print(f"step {step + 1:2d}: true mean {days[step].mean():.2f}, released {result.outputs[step]:.2f}")


if __name__ == "__main__":
    main()
