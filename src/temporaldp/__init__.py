"""Differential privacy under temporal correlations: what releases leak, which budgets satisfy a level, and releases that do.

Begin with an adversary, who knows how people move, and ask what releases leak to them, in nats:

>>> import temporaldp as tdp
>>> matrix = tdp.TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
>>> adversary = tdp.Adversary(backward=matrix, forward=matrix)
>>> round(tdp.temporal_leakage(adversary, [0.1] * 10).worst, 3)
0.479

What is known       Adversary, TransitionMatrix, IntervalMatrix, sticky, Periodic; estimate_adversary and others
What leaks          temporal_leakage, leakage_supremum, event_epsilons; by Exact, PaperBound, ApproximateDP or MetricPrivacy
What may be spent   sustainable_budget, refresh_interval, compare_guarantees, level_for_error, plan_budget, plan_noise,
                    plan_guarantee, compare_plans, replan; step by step TemporalAccountant
Releases            release_histograms, ContinualRelease, Ledger, learn_correlation, Project; smooth
Mechanisms          LaplaceNoise, GaussianNoise, RandomizedResponse and others; Mechanism.from_... for one of your own
Files               load_sample, sample_commuters, read_traces, read_counts; load_ and save_ of matrices, plans and others
More                studies, deployment (published systems), adapters (other libraries), errors; and the rest of accounting,
                    correlated_noise, correlation, counts, kernels, mechanisms, planning, release, smoothing and tables
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
