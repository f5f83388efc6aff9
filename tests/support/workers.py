"""Processes that release and are killed, or race; run as a script, so that forks start from a small clean process.

python workers.py kills LEDGER FOLDER N_KILLS SEED [NOISE]      prints a JSON report; NOISE 1: under a noise plan
python workers.py race LEDGER FOLDER N_STEPS [NOISE]
python workers.py forks LEDGER FOLDER
python workers.py beside LEDGER FOLDER DROP_LOCKS
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

from temporaldp import (
    Adversary,
    ApproximateDP,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    LeakageSeries,
    Ledger,
    LedgerError,
    NoisePlan,
    TemporalAccountant,
    TransitionMatrix,
)
from temporaldp.data.counts import NoisyHistogram

LONGEST_LIFE = 10
"""Steps, of the length that they have on this machine while it does whatever else it does."""

WHILE_RELEASING = 0.8
"""Share of the processes that live until they have opened the ledger; the others may be killed while they do."""

ALPHA = 1.0
DELTA = 1e-6
STEPS_PLANNED = 4_000
"""More than any number of kills leaves time for."""

N_STATES = 3
ADVERSARY = Adversary(
    TransitionMatrix([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]),
    TransitionMatrix([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.4, 0.5]]),
)


class Noted:
    """A mechanism that notes every draw in a file before it hands it out, and what it was called with."""

    def __init__(self, inner, drawn: Path) -> None:
        self._inner, self._drawn = inner, drawn

    def __call__(self, snapshot, parameter):
        output = self._inner(snapshot, parameter)
        _note(self._drawn, {"draw": output.tolist(), "parameter": parameter})
        return output


class NotedHistogram(Noted):
    """A histogram under budgets."""

    def epsilon_spent(self, epsilon):
        return self._inner.epsilon_spent(epsilon)


class NotedNoise(Noted):
    """A histogram with noise of a scale."""

    @property
    def noise(self):
        return self._inner.noise


@cache
def noise_plan():
    """Another scale at every step, so that a step with another one's noise is noticed; the leakage is only carried along."""
    leaked = [np.full(STEPS_PLANNED, value) for value in (0.3, 0.5, 0.5, 0.7)]
    scales = np.linspace(20.0, 40.0, STEPS_PLANNED)
    return NoisePlan(
        leakage=LeakageSeries(*leaked, accounting=ApproximateDP(DELTA)), alpha=1.0, noise="gaussian", scales=scales
    )


@cache
def accountant():
    """Made once, before the forks: what lasts for ever takes longer to find than a process lives."""
    made = TemporalAccountant(ADVERSARY, alpha=ALPHA)
    assert made.reserve > 0.0  # which looks for it
    return made


def opened(ledger, drawn, noise=0):
    if noise:
        mechanism = NotedNoise(NoisyHistogram(N_STATES, "gaussian"), drawn)
        return ContinualRelease(mechanism, ledger=ledger, plan=noise_plan(), description="noted noise")
    mechanism = NotedHistogram(DiscreteLaplaceHistogram(n_states=N_STATES), drawn)
    return ContinualRelease(mechanism, ledger=ledger, accountant=accountant(), description="noted histogram")


def _note(path, document):
    """One line, in one write, so that a kill leaves all of it or nothing."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, (json.dumps(document) + "\n").encode())
    os.close(handle)


def _release_for_ever(ledger, folder, ready, noise):
    with opened(ledger, folder / "drawn", noise) as stream:
        if stream.accountant is not None:
            # Counts what the ledger has, and loads what the next step counts with, which takes longer than most processes live.
            stream.accountant.total(stream.accountant.reserve)
        os.write(ready, b"!")
        step = len(stream)
        while True:
            for past in {0, step // 2, step - 1, step}:  # what others released, and the next
                if past >= 0:
                    output = stream.release([50, 30, 20], time=past)
                    _note(folder / "published", {"step": past, "output": output.tolist()})
            step += 1


def _seconds_a_step(folder, noise):
    with opened(folder / "pace.db", folder / "pace", noise) as stream:
        stream.release([50, 30, 20], time=0)
        began = time.monotonic()
        for step in range(1, 6):
            stream.release([50, 30, 20], time=step)
        return (time.monotonic() - began) / 5


def kills(ledger, folder, n_kills, seed, noise=0):
    """Fork a process that releases, kill it at a random moment, look at what it left; again and again."""
    rng = random.Random(seed)
    DiscreteLaplaceHistogram(n_states=1)([0], 1.0)  # loads OpenDP, so that the forks need not
    NoisyHistogram(1, "gaussian")([0], 1.0)
    longest = LONGEST_LIFE * _seconds_a_step(folder, noise)
    opened(ledger, folder / "drawn", noise).close()
    lengths = [0]
    for _ in range(n_kills):
        waiting, ready = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _release_for_ever(ledger, folder, ready, noise)
            finally:
                os._exit(1)
        os.close(ready)
        if rng.random() < WHILE_RELEASING:
            os.read(waiting, 1)
        time.sleep(rng.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        os.close(waiting)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the release stopped by itself"
        with Ledger(ledger) as left:  # checks the chain
            lengths.append(len(left))
    return {"lengths": lengths}


def race(ledger, folder, n_steps, noise=0):
    """Two processes release the same steps at the same time."""
    opened(ledger, folder / "drawn", noise).close()
    children = []
    for number in range(2):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with opened(ledger, folder / "drawn", noise) as stream:
                    for step in range(n_steps):
                        output = stream.release([50, 30, 20], time=step)
                        _note(folder / f"published{number}", {"step": step, "output": output.tolist()})
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    return {"codes": [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]}


def forks(ledger, folder):
    """Processes that inherit an open release, or open the ledger anew, while the parent goes on and closes."""
    children = []
    stream = opened(ledger, folder / "drawn")
    output = stream.release([50, 30, 20], time=0)
    _note(folder / "published", {"step": 0, "output": output.tolist()})
    for number in range(2):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                inherited = stream if number else opened(ledger, folder / "drawn")
                for step in range(1, 16):
                    output = inherited.release([50, 30, 20], time=step)
                    _note(folder / f"published{number}", {"step": step, "output": output.tolist()})
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    for step in range(1, 6):
        output = stream.release([50, 30, 20], time=step)
        _note(folder / "published", {"step": step, "output": output.tolist()})
    stream.close()
    return {"codes": [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]}


def beside(ledger, folder, drop_locks=0):
    """Another process releases and closes while this one has the ledger open, and has opened and closed it once more."""
    stream = opened(ledger, folder / "drawn")
    stream.release([50, 30, 20], time=0)
    with Ledger(ledger) as another:  # closing a file drops a process's locks on it, whoever took them
        another.verify()
    if drop_locks:
        Path(ledger).read_bytes()
    code = "import sys; sys.path[0] = sys.argv[1]; import workers; from pathlib import Path; "
    code += "s = workers.opened(sys.argv[2], Path(sys.argv[3]) / 'drawn'); s.release([50, 30, 20], time=1); s.close()"
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", code, here, ledger, str(folder)], check=True)
    log_stays = Path(f"{ledger}-wal").exists()
    told = []
    try:
        stream.release([50, 30, 20], time=2)
    except LedgerError as error:
        told.append(str(error))
    stream.close()
    with opened(ledger, folder / "drawn") as again:
        outputs = [again.release([50, 30, 20], time=step).tolist() for step in range(4)]
    return {"log_stays": log_stays, "outputs": outputs, "told": told}


if __name__ == "__main__":
    mode, place, where, *numbers = sys.argv[1:]
    report = {"kills": kills, "race": race, "forks": forks, "beside": beside}[mode](
        place, Path(where), *map(int, numbers)
    )
    print(json.dumps(report))
