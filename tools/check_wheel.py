"""Build the package, and install it as others will: alone, with each extra, at the oldest versions, by each Python here.

Run with:  make test-slow NAME=wheel  (half an hour; ONLY="base tables" checks these environments alone)
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
NOT_FOR_USERS = {"all", "audit", "bench", "browser", "dev", "docs", "wheel"}
LEFT_OUT = (".ci/", ".github/")
"""Of the repository, in the source distribution."""

PYTHONS = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
"""That the package is stated to run on."""


def run(*command: object, folder: Path = ROOT) -> None:
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    for line in done.stdout.splitlines()[-1:]:
        print(line, flush=True)


def tracked(*under: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", *under], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def same(found: set[str], expected: set[str], what: str) -> None:
    if found != expected:
        sys.exit(f"{what} lacks {sorted(expected - found)} and has {sorted(found - expected)} more")


def built(folder: Path) -> Path:
    """The wheel, made from the unpacked source distribution, so that this is known to be whole; what is in both is compared."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder)
    (source,) = folder.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(folder / "source", filter="data")
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {name for name in tracked() if not name.startswith(LEFT_OUT)}
    same(names, expected | {"PKG-INFO"}, source.name)
    (unpacked,) = (folder / "source").iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, folder=unpacked)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    same(packed, {name.removeprefix("src/") for name in tracked("src/temporaldp")}, wheel.name)
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source)
    print(f"{wheel.name}: {len(packed)} files, {wheel.stat().st_size >> 10} KiB", flush=True)
    return wheel


def closure(extra: str) -> list[str]:
    """The extra, and those that it brings along."""
    found = [extra]
    for requirement in EXTRAS[extra]:
        if inside := re.fullmatch(r"temporaldp\[(.*)\]", requirement):
            found += [name for one in inside[1].split(",") for name in closure(one)]
    return sorted(set(found) - NOT_FOR_USERS)


def oldest(extra: str | None, folder: Path) -> Path:
    """A file of pins: for everything that pyproject.toml names, the lowest version that it and the others allow."""
    path = folder / f"oldest-{extra or 'base'}.txt"
    asked = ["--extra", extra] if extra else []
    run(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", *asked,
        "--resolution", "lowest-direct", "--output-file", path, ROOT / "pyproject.toml")  # fmt: skip
    return path


def interpreter(version: str) -> str | None:
    """An interpreter of this version, also of those that pyenv keeps; None where there is none."""
    kept = [str(path) for path in (Path.home() / ".pyenv" / "versions").glob("*/bin")]
    paths = os.pathsep.join([*kept, os.environ["PATH"]])
    found = subprocess.run(
        [sys.executable, "-m", "uv", "python", "find", "--no-python-downloads", "--no-project", version],
        capture_output=True, text=True, check=False, env={**os.environ, "PATH": paths},
    )  # fmt: skip
    return None if found.returncode else found.stdout.strip()


def installed(wheel: Path, extra: str | None, folder: Path, constraints: Path, by: str = sys.executable) -> None:
    """A fresh environment with the wheel and one extra, and what must work there."""
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", by, folder)
    python = folder / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    # pip refuses hashes of constraints beside a wheel without one
    run(
        sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, "--constraint", constraints, wanted
    )
    size = sum(path.stat().st_size for path in (folder / "lib").rglob("*") if path.is_file()) >> 20
    print(f"{extra or 'base'}, by {constraints.name}: {size} MiB", flush=True)
    run(python, "-I", ROOT / "tools" / "smoke.py", *(closure(extra) if extra else []), folder=folder)


def main() -> None:
    os.environ |= {"PYTHONWARNINGS": "ignore", "MPLBACKEND": "agg"}
    os.environ.pop("PYTHONPATH", None)
    users = [None, *(name for name in EXTRAS if name not in NOT_FOR_USERS)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel = built(folder)
        environments = {extra or "base": extra for extra in users}
        environments |= {f"{extra or 'base'}-oldest": extra for extra in (None, "cli", "all")}
        environments |= {f"{version}-cli": "cli" for version in PYTHONS}
        for name in (os.environ.get("ONLY") or " ".join(environments)).split():
            extra = environments[name]
            constraints = oldest(extra, folder) if name.endswith("-oldest") else ROOT / "constraints.txt"
            by = interpreter(name.removesuffix("-cli")) if name.endswith("-cli") else sys.executable
            if by is None:
                print(f"{name} was left out: there is no such interpreter here", flush=True)
                continue
            installed(wheel, extra, folder / name, constraints, by)


if __name__ == "__main__":
    main()
