"""Shares of a level that are left unused, so that what one computation accepts another one, which rounds otherwise, admits.

In order:

========================  ==============================================================================================
share                     is left because
========================  ==============================================================================================
`CONSTANT_MARGIN`         a supremum and a long series of one budget are proved by different sums, up to 1e-12 apart
`FILTER_MARGIN`           a filter stops looking at steps that are this far below the level; of long memories at most
                          `LARGEST_FILTER_MARGIN`, where rounding takes more
2 `FILTER_MARGIN`         a plan is admitted step by step, by a filter (`Accounting.plan_margin` of `Exact`)
3 `FILTER_MARGIN`         a sustainable budget is proved once more, as the reserve of a filter
4 `FILTER_MARGIN`         the search for a plan ends with budgets that are then reduced to what a plan leaves
`STEP_MARGIN`, a step     by the paper's bound the headroom of a filter expands from step to step, and with it its rounding
`CLOCK_MARGIN`            over a clock, blocks of steps in place of the past round by more
`SET_MARGIN`              claims for every matrix of a set are a little above the smallest ones; plans leave half of it
========================  ==============================================================================================
"""

from __future__ import annotations

from temporaldp.base.values import ROUNDOFF

CONSTANT_MARGIN = 4e-12
FILTER_MARGIN, LARGEST_FILTER_MARGIN = 1e-11, 1e-9
STEP_MARGIN = 256.0 * ROUNDOFF
CLOCK_MARGIN = 1e-9
SET_MARGIN = 1e-7
