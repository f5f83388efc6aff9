"""Interpreted and compiled kernels are one text: whole processes of either kind print the same numbers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import CancelledError

import numpy as np
import pytest

from temporaldp.kernels import compilation
from temporaldp.kernels.compilation import Kernel, kernel
from temporaldp.kernels.threads import spread, together
from temporaldp.progress import progressed

PROGRAM = """
import sys
import numpy as np
import temporaldp as tdp
from temporaldp.kernels import compilation

compilation.INTERPRETED_SECONDS = float(sys.argv[1])
compilation.LARGEST_INTERPRETED = 10**9
rng = np.random.default_rng(7)

def walk(n, stay):
    rows = stay * np.eye(n) + (1.0 - stay) * rng.dirichlet(np.ones(n), size=n)
    return tdp.TransitionMatrix(rows / rows.sum(axis=1, keepdims=True))

def show(*numbers):
    for number in np.concatenate([np.ravel(one) for one in numbers]):
        print(float(number).hex())

for n, stay in ((2, 0.0), (3, 0.6)):
    adversary = tdp.Adversary(walk(n, stay), walk(n, stay))
    budgets = rng.uniform(0.0, 0.5, size=12)
    for releases in (budgets, np.full(12, 0.2)):
        for accounting in (tdp.Exact(), tdp.PaperBound()):
            series = tdp.temporal_leakage(adversary, releases, accounting=accounting)
            show(series.backward, series.forward, series.temporal)
    for epsilon in (0.1, 3.0):  # the second has none where states can be left for long
        limits = tdp.leakage_supremum(adversary, epsilon)
        show(limits.backward, limits.forward, limits.temporal)
    accountant = tdp.TemporalAccountant(adversary, alpha=1.0)
    for _ in range(2):
        accountant.spend(0.5 * accountant.remaining())
        show(accountant.total(), accountant.remaining())
users = [tdp.Adversary(walk(3, 0.3), walk(3, 0.3)) for _ in range(3)]
show(tdp.temporal_leakage(users, budgets).temporal)
identity = tdp.Adversary(tdp.TransitionMatrix(np.eye(2)), tdp.TransitionMatrix(np.eye(2)))
show(tdp.temporal_leakage(identity, [400.0, 400.0, 300.0]).temporal)  # beyond what coefficients can carry
print("numba" in sys.modules)
"""


def printed(seconds: float) -> list[str]:
    run = subprocess.run([sys.executable, "-c", PROGRAM, str(seconds)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_interpreted_and_compiled_kernels_return_the_same_numbers() -> None:
    interpreted, compiled = printed(float("inf")), printed(0.0)
    assert compiled[-1] == "True"
    assert len(interpreted) == len(compiled) > 100
    apart = [(a, b) for a, b in zip(interpreted[:-1], compiled[:-1], strict=True) if a != b]
    for a, b in apart:  # logarithms and exponentials of machine code may round differently
        assert float.fromhex(a) == pytest.approx(float.fromhex(b), rel=1e-12, abs=1e-15)


def test_the_sample_needs_no_compiler() -> None:
    program = (
        "import sys, temporaldp as tdp\n"
        "from temporaldp.kernels import compilation\n"
        "compilation.INTERPRETED_SECONDS = 60.0\n"  # however slow the machine is
        "adversary = next(tdp.estimate_adversaries(tdp.load_sample()))\n"
        "tdp.temporal_leakage(adversary, [0.1] * 47); tdp.leakage_supremum(adversary, 0.1)\n"
        "print('numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@kernel
def reciprocals(values, out):
    for k in range(values.size):
        out[k] = 1.0 / float(values[k])


@kernel
def slow_sum(n):
    total = 0.0
    for k in range(n):
        total += reciprocals_of_one(k)
    return total


@kernel
def reciprocals_of_one(k):
    return 1.0 / (1.0 + k)


@pytest.fixture
def fresh_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_spent", 0.0)


@pytest.mark.usefixtures("fresh_time")
def test_interpreted_errors_fall_back_to_compiled_code() -> None:
    out = np.zeros(2)
    reciprocals(np.array([2.0, 0.0]), out)
    assert out.tolist() == [0.5, np.inf]


@pytest.mark.usefixtures("fresh_time")
def test_a_long_computation_is_interrupted_and_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "INTERPRETED_SECONDS", 0.01)
    assert slow_sum(300_000) == pytest.approx(sum(1.0 / (1.0 + k) for k in range(300_000)))
    assert isinstance(slow_sum, Kernel)
    assert "compiled" in slow_sum.__dict__


@kernel
def counted_up(counts, n):
    for _ in range(n):
        counts[0] += reciprocals_of_one(0)
    return counts[0]


@pytest.mark.usefixtures("fresh_time")
def test_interrupted_interpretation_has_no_side_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "INTERPRETED_SECONDS", 0.01)
    counts = np.zeros(1)
    assert counted_up(counts, 300_000) == counts[0] == 300_000.0
    assert "compiled" in counted_up.__dict__


def test_a_kernel_that_shares_arrays_with_other_threads_is_not_interpreted(monkeypatch):
    """An interrupted interpretation restores its arrays and would overwrite what other threads wrote to them."""
    monkeypatch.setenv("TEMPORALDP_THREADS", "2")
    monkeypatch.setattr(Kernel, "interpreted", None)
    written = np.zeros(8)
    spread(lambda first, last: fill_with_one(written, first, last), 8, step=1, work=1 << 30)
    assert (written == 1.0).all()


@kernel
def fill_with_one(written, first, last):
    for k in range(first, last):
        written[k] = 1.0


@pytest.mark.parametrize("threads", ["1", "2"])
def test_much_work_is_done_in_blocks_between_which_signals_are_handled(monkeypatch, threads):
    monkeypatch.setenv("TEMPORALDP_THREADS", threads)
    blocks = spread(lambda first, last: (first, last), 1_000, step=4, work=1 << 30)
    assert len(blocks) > 100 and all((last - first) % 4 == 0 for first, last in blocks)
    assert [k for block in blocks for k in range(*block)] == list(range(1_000))
    assert spread(lambda first, last: (first, last), 1_000, step=4, work=1) == [(0, 1_000)]


def test_what_an_interrupt_leaves_behind_ends_at_its_next_report(monkeypatch):
    monkeypatch.setenv("TEMPORALDP_THREADS", "2")
    begun, ended = threading.Event(), threading.Event()

    def computed(item):
        if item == "interrupted":
            begun.wait()
            raise KeyboardInterrupt
        try:
            while True:
                begun.set()
                progressed("computing", 0.5)
        except CancelledError:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        together(computed, ["interrupted", "other"])
    assert ended.wait(60.0)


SIGNALLED = """
import signal, time
import numpy as np
import temporaldp as tdp

rng = np.random.default_rng(0)
matrix = tdp.TransitionMatrix(rng.dirichlet(np.full(60, 0.2), 60) * 0.9 + 0.1 / 60)
tdp.temporal_leakage(tdp.Adversary(matrix), [0.1, 0.2])
handled = [time.monotonic()]
signal.signal(signal.SIGALRM, lambda *_: handled.append(time.monotonic()))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
tdp.temporal_leakage(tdp.Adversary(matrix), np.linspace(0.01, 0.3, 60))
signal.setitimer(signal.ITIMER_REAL, 0.0)
handled.append(time.monotonic())
print(max(np.diff(handled)) / (handled[-1] - handled[0]))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there are no interval timers")
def test_signals_are_handled_while_a_long_series_is_computed():
    run = [sys.executable, "-c", SIGNALLED]
    found = subprocess.run(
        run, capture_output=True, text=True, check=True, env=os.environ | {"TEMPORALDP_THREADS": "1"}
    )
    assert float(found.stdout) < 0.5
