"""Publish counts as they arrive, with a ledger that survives crashes.

Run with:  python examples/continual_release.py
Run it twice: the second run returns the counts of the first, and continues after them.
"""

from pathlib import Path

import temporaldp as tdp

ALPHA, STEPS_A_RUN = 1.0, 20


def main() -> None:
    traces = tdp.load_sample()
    truth = traces.histogram()
    # What is known about how people move from state to state; here the sample's own, which a real release must not use.
    adversary = next(tdp.estimate_adversaries(traces, prior=1.0))
    accountant = tdp.TemporalAccountant(adversary, alpha=ALPHA)
    mechanism = tdp.DiscreteLaplaceHistogram(n_states=traces.n_states)
    with tdp.ContinualRelease(
        mechanism, ledger=Path("release.db"), accountant=accountant, states=traces.states
    ) as stream:
        known = len(stream)
        for step in range(min(known + STEPS_A_RUN, len(truth))):
            counts = stream.release(truth[step], time=traces.times[step])
            assert counts is not None, "only steps that were passed over have none"
            shown = "  ".join(f"{state} {count:4d}" for state, count in zip(traces.states, counts, strict=True))
            print(f"{traces.times[step]}  {'kept ' if step < known else 'drawn'}  {shown}")
        # The stream charges an accountant of its own, from which nothing else spends.
        charged = stream.accountant
        assert charged is not None
        leakage = charged.leakage()
        print(f"worst leakage {leakage.worst:.4f} at step {leakage.worst_time}, of at most {ALPHA}")
        print(f"head of the ledger: {stream.ledger.head}")


if __name__ == "__main__":
    main()
