"""Numbers that other people's programs printed, for points beside our curves; in nats unless they say otherwise.

The authors' program (MATLAB, run under GNU Octave 7.3) for the quantities of the paper; the seconds are from the paper's own
text, Section VI-A. `tests/support/reference_values.json` holds more of them, with all digits; a test compares the two.
"""

AUTHORS = "the authors' program"
OTHERS = "interior-point and sequential quadratic solvers"
REFERENCE = "the reference file (program not named)"
PAPER = "the paper, Section VI-A (Java and the solvers of 2016)"

MODERATE_BPL = (
    0.1,
    0.18078403386384084,
    0.24714774105986315,
    0.30236484909491596,
    0.348767506060074,
    0.3880737760105586,
    0.4215839752026679,
    0.45030425467604707,
    0.47502757703649856,
    0.49638859684986947,
)
"""Example 2 (ii): epsilon = 0.1, ten steps."""

MODERATE_SUPREMUM = {0.15: 1.1922422697836816, 0.2: 2.368150643853777}
"""Theorem 5 for the same matrix, by epsilon."""

SMOOTHED_SUPREMUM = {1.0: 5.6964955918377544, 0.1: 0.633370538712722}
"""Smoothed strongest correlation, n = 50, s = 0.005, by epsilon."""

SMOOTHED_BPL_AT_10 = {1.0: 5.622003449339829, 0.1: 0.4937039025609793}
"""The same at the tenth step."""

ALGORITHM_2 = 0.20387212304613644
"""Figure 7: the one budget, alpha = 1."""

ALGORITHM_3 = (0.49980623165715343, 0.20387212304613556, 0.7040658913889822)
"""Figure 7: first, middle and last budget, alpha = 1."""

NOISE = {
    "Algorithm 2": {(0.001, 10): 31.34852953, (0.001, 100): 31.34852953, (0.01, 10): 3.7861219265},
    "Algorithm 3": {(0.001, 10): 25.27568376, (0.001, 100): 30.7412, (0.01, 10): 3.2055664271},
    "optimal plan": {(0.001, 10): 4.572682821, (0.001, 100): 23.11341, (0.01, 10): 2.60715756},
}
"""Mean of 1 / epsilon by (s, T), alpha = 2, n = 50 in both directions; the optimum by `OTHERS`, the rest by `REFERENCE`."""

SECONDS = {"Algorithm 1": 11.0, "Gurobi": 47 * 60.0, "lp_solve": 38 * 3600.0}
"""n = 150, alpha = 10: 11 seconds, 47 minutes, 38 hours."""
