"""A pipeline that asks a service before each step: whether it may publish, and with how much noise.

Here the service is started beside it, over an SQLite file; a real one runs elsewhere (docs/how-to/service.md).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from temporaldp.apps.serve import Client
from temporaldp.base.errors import RequestRefusedError

COMMAND = [sys.executable, "-m", "temporaldp"]
MORNING = [[70, 30], [64, 36], [51, 49], [40, 60]]


def pipeline(client: Client) -> None:
    release = client.create(
        {
            "alpha": 1.0,
            "backward": [[0.8, 0.2], [0.2, 0.8]],
            "forward": [[0.8, 0.2], [0.2, 0.8]],
            "states": ["asleep", "awake"],
            "mechanism": {"kind": "histogram", "n_states": 2},
        },
        key="sleep-of-may",
    )
    for hour, counts in enumerate(MORNING, start=6):
        step = client.publish(
            release, counts, time=f"2024-05-01T{hour:02d}:00", key=f"hour-{hour}"
        )  # repeated until it is answered
        print(f"{hour}:00  {step['counts']}  epsilon {step['epsilon']:.3f}")
    try:
        client.spend(release, epsilon=0.8, time="2024-05-01T10:00")
    except RequestRefusedError as refusal:
        print(f"refused: {refusal}; what remains is {refusal.remaining:.3f}")
    state = client.state(release, leakage=True)
    print(f"{state['n_steps']} steps, worst leakage {state['leakage']:.3f} of {state['alpha']:g}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "service.db")
        create = [*COMMAND, "token", "create", "--store", store, "--role", "own"]
        token = subprocess.run(create, capture_output=True, text=True, check=True).stdout.strip()
        serve = [*COMMAND, "serve", "--no-browser", "--port", "0", "--store", store]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            try:
                with Client(address, token) as client:
                    pipeline(client)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
