"""Whether an installed temporaldp does what its extras promise, and names the extra where one is missing.

Run by tools/check_wheel.py with the interpreter of a fresh environment:  PYTHON tools/smoke.py [EXTRA ...]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import temporaldp as tdp

WALK = tdp.TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
ADVERSARY = tdp.Adversary(WALK, WALK)
RECORD = """
tier: 2
status: Draft
deployment:
  basic: {name: Counts of visits, data_curators: [Nobody], publication_date: '2026-01-01'}
  dp_variant: {variant_name: Pure DP}
  privacy_loss:
    privacy_unit: User-day-level
    privacy_parameters: {epsilon: 1.0}
  deployment_model: {model_name: Central, release_type: Many releases, release_type_details: Daily}
"""


def alone() -> None:
    """Leakage, suprema, plans and accountants, with nothing but the base."""
    assert tdp.__version__
    series = tdp.temporal_leakage(ADVERSARY, [0.1, 0.1])
    other = WALK.leakage_profile().loss(0.1) + 0.1  # two steps, two values: the paper's recursion is exact
    assert abs(series.worst - other) < 1e-12, series
    assert tdp.leakage_supremum(ADVERSARY, 0.1).temporal > series.worst
    assert tdp.plan_budget(ADVERSARY, alpha=1.0, horizon=5).leakage.worst <= 1.0
    noise = tdp.plan_noise(ADVERSARY, alpha=1.0, accounting=tdp.ApproximateDP(delta=1e-6))
    assert noise.scales[0] > 0.0
    accountant = tdp.TemporalAccountant(ADVERSARY, alpha=1.0)
    assert accountant.spend(accountant.remaining()).total() <= 1.0
    assert tdp.studies.diagnose is not None
    assert (Path(tdp.__file__).parent / "py.typed").exists()


def tables(folder: Path) -> None:
    traces = tdp.load_sample()
    assert traces.n_users == 151
    assert next(tdp.estimate_adversaries(traces)).backward is not None


def release(folder: Path) -> None:
    assert tdp.DiscreteLaplaceHistogram(n_states=2)([10, 5], 0.5).shape == (2,)


def ledger(folder: Path) -> None:
    mechanism = tdp.DiscreteLaplaceHistogram(n_states=2)
    accountant = tdp.TemporalAccountant(ADVERSARY, alpha=1.0)
    with tdp.ContinualRelease(mechanism, ledger=folder / "release.db", accountant=accountant) as stream:
        first = stream.release([10, 5], time="1")
        assert first is not None
        assert (first == stream.release([10, 5], time="1")).all()


def report(folder: Path) -> None:
    from temporaldp.publish.report.figures import leakage_figure
    from temporaldp.publish.report.style import save_figure

    save_figure(
        leakage_figure(tdp.temporal_leakage(ADVERSARY, [0.1] * 5), times=tuple("12345")),
        folder / "leakage.png",
    )
    assert (folder / "leakage.png").stat().st_size > 5_000


def deployment(folder: Path) -> None:
    from temporaldp.publish.deployment.formats import render_card

    (folder / "record.yaml").write_text(RECORD)
    card = tdp.deployment.Deployment.load(folder / "record.yaml").card(states=["here", "away"], stays=(0.5, 0.9))
    assert "<svg" in render_card(card) or "data:image" in render_card(card)


def cli(folder: Path) -> None:
    from temporaldp.base.extras import needing

    with needing("cli"):
        import rich  # noqa: F401
        import typer  # noqa: F401
    command = [str(Path(sys.executable).with_name("temporaldp")), "demo", "--output", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / "report.html").stat().st_size > 10_000


def client(folder: Path) -> None:
    from temporaldp.apps.serve import Client

    Client("http://127.0.0.1:1", "no token").close()


def serve(folder: Path) -> None:
    from temporaldp.apps.serve.server import serve as run

    assert run is not None
    command = [
        sys.executable,
        "-m",
        "temporaldp",
        "serve",
        "--no-browser",
        "--port",
        "0",
        "--store",
        str(folder / "s.db"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            for path, expected in (("/", "<html"), ("/docs", "<html"), ("/docs/style.css", "{")):
                with urlopen(address.rstrip("/") + path) as answer:
                    assert expected in answer.read().decode(), path
        finally:
            server.terminate()


def postgresql(folder: Path) -> None:
    try:
        tdp.Ledger("postgresql://nobody@127.0.0.1:1/nothing")
    except tdp.LedgerError:  # the driver is there, the server is not
        return
    raise AssertionError("a ledger without a server")


def spark(folder: Path) -> None:
    from temporaldp.base.extras import needing

    with needing("spark"):
        import pyspark

    assert int(pyspark.__version__.split(".")[0]) >= 4


def dp_accounting(folder: Path) -> None:
    from temporaldp.base.extras import needing

    with needing("dp-accounting"):
        from dp_accounting import LaplaceDpEvent

    series = tdp.temporal_leakage(ADVERSARY, [LaplaceDpEvent(20.0)] * 3, accounting=tdp.ApproximateDP(delta=1e-6))
    assert 0.0999 < series.epsilons[0] <= 0.1001, series.epsilons


SMOKES: dict[str, Callable[[Path], None]] = {
    "tables": tables,
    "release": release,
    "ledger": ledger,
    "report": report,
    "deployment": deployment,
    "cli": cli,
    "client": client,
    "serve": serve,
    "postgresql": postgresql,
    "spark": spark,
    "dp-accounting": dp_accounting,
}


def missing(name: str, folder: Path, *, strictly: bool) -> None:
    """What is not installed says how to install it; where another library brought it along, it works."""
    try:
        SMOKES[name](folder)
    except tdp.errors.MissingExtraError as error:
        assert f".[{error.extra}]" in str(error), error
        assert error.extra in {name, "tables", "ledger", "report", "release"}, error
    else:
        assert not strictly, f"{name} works without its extra"


def main(installed: list[str]) -> None:
    alone()
    for name, smoke in SMOKES.items():
        with tempfile.TemporaryDirectory() as folder:
            if name in installed:
                smoke(Path(folder))
            else:
                missing(name, Path(folder), strictly=not installed)
    if "cli" not in installed:
        done = subprocess.run([sys.executable, "-m", "temporaldp"], capture_output=True, text=True, check=False)
        assert done.returncode == 2, done
        assert ".[cli]" in done.stderr or "rich" in sys.modules, done.stderr
    print(f"temporaldp {tdp.__version__} with {', '.join(installed) or 'nothing more'}: works")


if __name__ == "__main__":
    main(sys.argv[1:])
