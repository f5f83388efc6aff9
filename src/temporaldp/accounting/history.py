"""One user's leakage at every step so far, kept up to date while budgets are spent: the odometer.

Notation
--------
A, F     what arrives at each step from the past and from the future; ``TPL_t = A_t + F_t + e_t``
top      index of the largest TPL among the steps up to each one

A new budget changes every F in principle. In the order of time reversed, F is the same function of the F after it as before, so
where one comes out as it was, all earlier ones would: the walk back stops there. How far that is depends on the correlation
(differences shrink by at most its contraction a step), not on how many steps there are.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from temporaldp.accounting.scalar import ScalarLoss


class Losses:
    """The loss of each transition of one user: the same at each, or one for each."""

    __slots__ = ("_each",)

    def __init__(self, each: Sequence[ScalarLoss]) -> None:
        self._each = each

    def __getitem__(self, transition: int) -> ScalarLoss:
        """The loss of the transition between steps `transition` and `transition` + 1."""
        return self._each[0] if len(self._each) == 1 else self._each[transition]

    @property
    def all_identity(self) -> bool:
        """Whether every transition passes everything on."""
        return all(loss.is_identity for loss in self._each)


class History:
    """What each step so far leaks about one user; looks at the budgets spent, which it does not own."""

    def __init__(self, past: Losses, future: Losses, spent: array[float]) -> None:
        self._past, self._future, self._spent = past, future, spent
        self._arrived, self._incoming = array("d"), array("d")
        self._top = array("q")
        self._whole = True
        self._added = (0, 0.0, 0.0)

    def worst(self) -> tuple[float, int]:
        """The largest TPL so far and the first step (from 0) that has it; (0, 0) before the first step."""
        if not self._spent:
            return 0.0, 0
        if self._future.all_identity:
            return self._user_level(), 0
        self._settle()
        top = self._top[-1]
        return self._leakage(top), top

    def worst_with(self, epsilon: float, arriving: float) -> tuple[float, int]:
        """The same if `epsilon` were spent next and `arriving` came from the steps after it; changes nothing."""
        if not self._spent:
            return epsilon + arriving, 0
        if self._future.all_identity:
            return self._user_level() + epsilon + arriving, 0
        self._settle()
        now = len(self._spent)
        arrived = self._past[now - 1](self._arrived[-1] + self._spent[-1])
        found = [(arrived + arriving + epsilon, now)]
        later = arriving + epsilon
        for t in range(now - 1, -1, -1):
            incoming = self._future[t](later)
            if incoming == self._incoming[t]:
                found.append((self._leakage(self._top[t]), self._top[t]))
                break
            found.append((self._arrived[t] + incoming + self._spent[t], t))
            later = incoming + self._spent[t]
        return max(found, key=lambda pair: (pair[0], -pair[1]))

    def _leakage(self, t: int) -> float:
        return self._arrived[t] + self._incoming[t] + self._spent[t]

    def _settle(self) -> None:
        """Bring A, F and top up to date with what was spent since."""
        if not self._whole:  # an interrupt left it half done: what stands there shows no longer where to stop
            self._arrived, self._incoming, self._top = array("d"), array("d"), array("q")
        settled, now = len(self._arrived), len(self._spent)
        if settled == now:
            return
        self._whole = False
        for t in range(settled, now):
            self._arrived.append(self._past[t - 1](self._arrived[t - 1] + self._spent[t - 1]) if t else 0.0)
            self._incoming.append(0.0)
            self._top.append(t)
        first = 0
        for t in range(now - 2, -1, -1):
            incoming = self._future[t](self._incoming[t + 1] + self._spent[t + 1])
            if t < settled and incoming == self._incoming[t]:
                first = t + 1
                break
            self._incoming[t] = incoming
        best = self._top[first - 1] if first else 0
        height = self._leakage(best)
        for t in range(first, now):
            here = self._leakage(t)
            if here > height:
                best, height = t, here
            self._top[t] = best
        self._whole = True

    def _user_level(self) -> float:
        """Sum of all budgets (Neumaier's): where everything passes on, all of them leak about the first step."""
        count, whole, error = self._added
        for epsilon in self._spent[count:]:
            total = whole + epsilon
            error += (whole - total) + epsilon if whole >= epsilon else (epsilon - total) + whole
            whole = total
            count += 1
        self._added = count, whole, error
        return whole + error
