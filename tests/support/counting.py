"""A counting loop over rows, which shares nothing with the readers: dictionaries, one row at a time."""

from __future__ import annotations

from collections import Counter, defaultdict


def counted(rows, linked=None):
    """Histogram and transitions of rows (user, position in time, state); `linked(t)`: whether t is a step after t - 1."""
    histogram, transitions, of_user = Counter(), Counter(), defaultdict(Counter)
    people = defaultdict(dict)
    for user, time, state in rows:
        people[user][time] = state
        histogram[time, state] += 1
    for user, values in people.items():
        for time, state in values.items():
            if time - 1 in values and (linked is None or linked(time)):
                transitions[values[time - 1], state] += 1
                of_user[user][values[time - 1], state] += 1
    return histogram, transitions, of_user


def counted_with_absent(rows, n_times, absent, linked=None):
    """The same where whoever has no row at a time has the state `absent` then."""
    people = defaultdict(dict)
    for user, time, state in rows:
        people[user][time] = state
    every = [(user, time, values.get(time, absent)) for user, values in people.items() for time in range(n_times)]
    return counted(every, linked)


def tables_of(found):
    """What a reader gives, as the same dictionaries."""
    histogram, transitions, of_user = Counter(), Counter(), {}
    for time, row in enumerate(found.histogram().tolist()):
        histogram.update({(time, state): n for state, n in zip(found.states, row, strict=True) if n})
    transitions.update(named(found, found.transition_counts()))
    for name, counts in found.user_transitions():
        of_user[name] = Counter(named(found, counts))
    return histogram, transitions, of_user


def named(found, counts):
    """A matrix of counts by the names of its states."""
    return {
        (one, other): n
        for one, row in zip(found.states, counts.tolist(), strict=True)
        for other, n in zip(found.states, row, strict=True)
        if n
    }
