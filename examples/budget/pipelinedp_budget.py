"""PipelineDP: a table of counts for every quarter, each with the epsilon that habits of the people allow.

Needs pipeline-dp, in an environment of its own.
Run with:  python examples/budget/pipelinedp_budget.py
"""

import pipeline_dp  # type: ignore[import-not-found]
from survey import EPSILON, QUARTERS, REMOVED_AND_ADDED, STATES, answers, report


def main() -> None:
    rows = [(person, quarter, state) for quarter, states in enumerate(answers()) for person, state in enumerate(states)]
    # What is added or removed is a person in one quarter, who is in one partition: all partitions together lose what one does
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON / REMOVED_AND_ADDED, total_delta=0.0)
    counts = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend()).aggregate(
        rows,
        pipeline_dp.AggregateParams(
            metrics=[pipeline_dp.Metrics.COUNT],
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
        ),
        pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[:2],
            partition_extractor=lambda row: row[1:],
            value_extractor=lambda row: 1,
        ),
        # Without these, partitions would be selected by their size, which costs a part of epsilon, and a delta
        public_partitions=[(quarter, state) for quarter in range(QUARTERS) for state in STATES],
    )
    accountant.compute_budgets()
    published = {partition: metrics.count for partition, metrics in counts}
    tables = [[published[quarter, state] for state in STATES] for quarter in range(QUARTERS)]
    (noise,) = accountant.mechanism_specs
    report("PipelineDP", [noise.eps] * QUARTERS, REMOVED_AND_ADDED, tables)


if __name__ == "__main__":
    main()
