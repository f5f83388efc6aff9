"""The bundled sample: 151 people, 47 five-minute steps, 5 sleep stages."""

from importlib.resources import as_file, files

from temporaldp.correlation import Trajectories
from temporaldp.files.traces import read_traces

STAGES = ("W", "R", "N1", "N2", "N3")


def load_sample() -> Trajectories:
    """Sleep stages of 151 people in 47 five-minute steps (HMC sleep staging database, CC BY 4.0; see NOTICE).

    Examples
    --------
    >>> load_sample()
    Trajectories(151 users, 47 times, 5 states: 'W', 'R', 'N1', 'N2' and 1 more)
    """
    with as_file(files("temporaldp.sample") / "sleep_5min.csv") as path:
        return read_traces(path, states=STAGES)
