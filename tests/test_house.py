"""The house keeps its order: which room imports which, who touches files, and that everything public is documented."""

from __future__ import annotations

import ast
import functools
import importlib
import pickle
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

import temporaldp
from command import SAMPLE
from places import REPOSITORY
from temporaldp.apps.cli import app
from temporaldp.apps.cli.main import PANELS, load
from temporaldp.base.extras import EXTRAS, needing
from tools.reference import commands, pages

SOURCE = REPOSITORY / "src" / "temporaldp"
# Data flows one way: a wing imports from wings before it, a room of a wing from rooms before it.
WINGS = {
    "base": ("errors", "extras", "progress", "names", "values", "display", "arrow", "documents"),
    "core": ("kernels", "correlation", "mechanisms", "accounting", "planning"),
    "data": ("sample", "tables", "smoothing", "files", "counts"),
    "lab": ("correlated_noise", "studies", "adapters", "cluster"),
    "publish": ("release", "report", "project", "deployment"),
    "apps": ("serve", "cli"),
}
ROOMS = [(wing, room) for wing, rooms in WINGS.items() for room in rooms]
# arrow.py hands results over as tables.
ALLOWED = {"base/arrow.py": {"pandas", "polars", "pyarrow"}, "base/documents.py": {"json"}}
HEAVY = {
    "matplotlib",
    "typer",
    "rich",
    "jinja2",
    "opendp",
    "pyarrow",
    "pandas",
    "duckdb",
    "polars",
    "pyspark",
    "io",
    "os",
    "pathlib",
    "csv",
    "json",
}
# What takes long to load, and is loaded where it is used.
LOADED_WHEN_USED = {
    "matplotlib", "opendp", "pyarrow", "pandas", "jinja2", "sqlalchemy", "dp_accounting",
    "narwhals", "duckdb", "polars", "pyspark", "fastapi", "uvicorn",
}  # fmt: skip


def modules():
    return sorted(SOURCE.rglob("*.py"))


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text())


def imports(path):
    """Rooms of temporaldp and top-level names of other packages that a module imports, anywhere in it.

    Of other packages without those that only the type checker reads, which no process loads.
    """
    rooms, others = set(), set()
    tree = tree_of(path)
    conditions = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    for_types = [node for node in conditions if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"]
    unloaded = {id(inner) for node in for_types for inner in ast.walk(node)}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            version_alone = node.module == "temporaldp" and [alias.name for alias in node.names] == ["__version__"]
            names = [] if version_alone else [node.module]
        for name in names:
            head, *rest = name.split(".")
            if head == "temporaldp":
                rooms.add(tuple(rest[:2]))
            elif id(node) not in unloaded:
                others.add(head)
    return rooms, others


@pytest.mark.long
@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_imports_only_from_wings_and_rooms_before_its_own(path):
    relative = path.relative_to(SOURCE)
    if len(relative.parts) == 1 or relative.parts[1:] == ("__init__.py",):
        return
    wing, room = relative.parts[0], relative.parts[1].removesuffix(".py")
    rooms, others = imports(path)
    for other in rooms - {(wing, room)}:
        if other == ():  # the package itself: the public names, for those who stand at the very end
            assert wing in {"publish", "apps"}
            continue
        assert ROOMS.index(other) < ROOMS.index((wing, room)), f"{relative} imports {'.'.join(other)}"
    if wing in {"base", "core"}:
        assert others & HEAVY <= ALLOWED.get(str(relative), set())


def test_every_folder_says_what_is_in_it():
    for wing, rooms in WINGS.items():
        map_of_rooms = (SOURCE / wing / "__init__.py").read_text()
        assert {path.stem for path in (SOURCE / wing).iterdir() if not path.stem.startswith("__")} == set(rooms)
        assert all(re.search(rf"^{room} +\w", map_of_rooms, re.MULTILINE) for room in rooms)


@pytest.mark.parametrize("path", sorted((REPOSITORY / "reproduction").glob("*.py")), ids=lambda path: path.name)
def test_the_reproduction_uses_only_public_names(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "temporaldp":
            assert node.module.count(".") <= 2
            assert {alias.name for alias in node.names} <= set(importlib.import_module(node.module).__all__)
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("temporaldp") for alias in node.names)


def loaded_by(code, *arguments):
    """Names of all modules that a process with this code loads, and of the packages that they belong to."""
    told = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    command = [sys.executable, "-c", told + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    modules = set(done.stderr.splitlines()[-1].split())
    return modules | {name.split(".")[0] for name in modules}


def test_importing_the_package_loads_nothing_heavy():
    loaded = loaded_by("import temporaldp")
    assert {name for name in loaded if name.startswith("temporaldp")} == {"temporaldp"}
    assert "numpy" not in loaded


def test_asking_what_releases_leak_loads_what_computes_it():
    loaded = loaded_by("import temporaldp; temporaldp.temporal_leakage")
    ours = {tuple(name.split(".")[1:3]) for name in loaded if name.count(".") >= 2 and name.startswith("temporaldp.")}
    assert {("core", "accounting"), ("core", "correlation"), ("core", "kernels")} <= ours
    assert {wing for wing, _ in ours} == {"base", "core"}
    assert len([name for name in loaded if name.startswith("temporaldp.")]) <= 110
    # scipy.sparse takes longer than NumPy itself: it loads with the first matrix
    assert not loaded & (LOADED_WHEN_USED | {"pydantic", "typer", "rich", "scipy.sparse"})


def test_help_names_all_groups_of_public_names_in_few_lines():
    story = temporaldp.__doc__.splitlines()
    assert len(story) <= 20
    named = set(re.findall(r"\w+", temporaldp.__doc__))
    plain = {
        name
        for name in temporaldp.__all__
        if not name.startswith(("estimate_", "load_", "save_")) and name[0].islower()
    }
    assert plain <= named
    assert dir(temporaldp) == sorted(temporaldp.__all__)


@pytest.mark.long
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["audit", "--help"]], ids=" ".join)
def test_version_and_help_load_nothing_heavy(arguments):
    loaded = loaded_by("from temporaldp.apps.cli import main; main()", *arguments)
    assert {"temporaldp", "typer"} <= loaded
    assert not loaded & (LOADED_WHEN_USED | {"scipy.sparse"})
    assert "numpy" not in loaded or "audit" in arguments


@pytest.mark.long
def test_a_small_audit_loads_only_what_reads_the_file():
    code = "from temporaldp.apps.cli import main; main()"
    loaded = loaded_by(code, "audit", SAMPLE, "--epsilon", "0.1", "--bound", "paper")
    assert loaded & LOADED_WHEN_USED == {"pyarrow", "duckdb"}


PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
# __main__.py asks for the extra `cli` before it imports the command line, which asks for `serve` before it imports the service.
BEHIND_THE_DOOR = {
    "apps/cli": {"typer", "rich"},
    "apps/serve": {"anyio", "fastapi", "prometheus_client", "pydantic", "starlette", "uvicorn"},
}


def libraries(requirements):
    """The names under which these requirements are imported."""
    imported = {
        "lazy-loader": "lazy_loader",
        "pyyaml": "yaml",
        "dp-accounting": "dp_accounting",
        "scikit-learn": "sklearn",
    }
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
    return {imported.get(name, name) for name in names - {"temporaldp"}}


def unguarded(path):
    """Libraries that a module imports, and the extra that it asks for with each; None for those that it imports just so."""
    found = set()

    def visit(node, extra):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.With) and ast.unparse(node.items[0].context_expr).startswith("needing("):
            extra = ast.literal_eval(node.items[0].context_expr.args[0])
        if isinstance(node, ast.Import):
            found.update((alias.name.split(".")[0], extra) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module.split(".")[0], extra))
        for child in ast.iter_child_nodes(node):
            visit(child, extra)

    visit(tree_of(path), None)
    return {(name, extra) for name, extra in found if name != "temporaldp" and name not in sys.stdlib_module_names}


@pytest.mark.long
def test_optional_libraries_are_imported_only_with_their_extra():
    """An optional import is inside `with needing(extra)`, and that extra installs it."""
    base, extras = libraries(PROJECT["dependencies"]), PROJECT["optional-dependencies"]
    brought = {"starlette": "fastapi", "pydantic": "fastapi", "py4j": "pyspark"}
    for path, (name, extra) in ((module, found) for module in modules() for found in unguarded(module)):
        if (
            name in base
            or name in {"gurobipy"}
            or name in BEHIND_THE_DOOR.get("/".join(path.relative_to(SOURCE).parts[:2]), ())
        ):
            continue
        assert extra is not None, f"{path.name} imports {name} outside of `with needing(...)`"
        assert {name, brought.get(name, name)} & libraries(extras[extra]), f"the extra {extra} does not install {name}"


def test_extras_named_by_errors_exist():
    assert set(EXTRAS) <= set(PROJECT["optional-dependencies"])
    with pytest.raises(temporaldp.errors.MissingExtraError, match=r"'\.\[tables\]'") as told, needing("tables"):
        import no_such_library  # noqa: F401
    assert told.value.extra == "tables"
    assert "no_such_library" in str(told.value)
    assert pickle.loads(pickle.dumps(told.value)).extra == "tables"


LONG_FILES = {"accountant.py": 780, "protocol.py": 575, "inputs.py": 520, "interval.py": 620, "ledger.py": 620}
"""The first two are mostly documentation; the others are one algorithm, one file or one set of settings each."""


def test_nothing_is_called_utils_and_no_file_is_long():
    for path in modules():
        assert "util" not in path.stem
        longest = LONG_FILES.get(path.name, 500)
        assert len(path.read_text().splitlines()) <= longest, path


LIMITS = {"core": 9_006, "base + data": 3_682, "lab": 1_022, "publish": 4_975, "apps": 2_303, "in all": 20_998}
"""The most statements of each wing."""


@pytest.mark.long
def test_the_package_stays_small():
    code = "import sys; sys.path.insert(0, 'tools'); import size; print({row[0]: row[1] for row in size.table(size.SOURCE)})"
    printed = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    found = ast.literal_eval(printed.stdout)
    assert {wing: found[wing] for wing, most in LIMITS.items() if found[wing] > most} == {}
    scripts = list((REPOSITORY / "src").rglob("static/*.js"))
    assert len(scripts) > 10
    assert sum(len(script.read_text().splitlines()) for script in scripts) <= 1_630


def test_classes_and_constants_have_names_of_their_own():
    """Two things of one name are taken for one another; and few numbers are worth a name at the top of a module."""
    classes, constants = Counter(), Counter()
    for path in modules():
        tree = tree_of(path)
        classes.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
        targets = [target for node in tree.body for target in getattr(node, "targets", [getattr(node, "target", None)])]
        names = [part.id for target in targets for part in getattr(target, "elts", [target]) if hasattr(part, "id")]
        constants.update(name for name in names if name.lstrip("_").isupper())
    assert {name for name, times in (classes + constants).items() if times > 1} == set()
    assert constants.total() <= 336


@pytest.mark.long
def test_no_code_asks_of_which_class_a_method_is():
    """Methods, filters, odometers and evidence answer through their protocols; nor are names of methods compared."""
    from temporaldp.core.accounting import protocol

    bases = (protocol.Accounting, protocol.OnlineState, protocol.Evidence)
    trees = {path: tree_of(path) for path in modules()}
    parents = {node.name: {ast.unparse(base).partition("[")[0] for base in node.bases}
               for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}  # fmt: skip
    known = {base.__name__ for base in bases}
    while more := {name for name, above in parents.items() if above & known} - known:
        known |= more
    known -= {"Accounting"}  # what a caller gives is checked to be one
    assert len(known) > 20
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                assert not known & set(re.findall(r"\w+", ast.unparse(node.args[1]))), (path, ast.unparse(node))
            if isinstance(node, ast.Compare):
                assert not re.search(r"(accounting|method)\.name\b", ast.unparse(node)), (path, ast.unparse(node))


@pytest.mark.parametrize("name", [*temporaldp.__all__, *temporaldp.studies.__all__])
def test_every_public_name_is_documented(name):
    reference = (REPOSITORY / "docs" / "reference.md").read_text()
    thing = getattr(temporaldp, name, None) or getattr(temporaldp.studies, name)
    listed = re.search(rf"^   (studies\.)?{name}(\.\w+)?$", reference, re.MULTILINE)
    assert listed, f"docs/reference.md does not list {name}"
    if not isinstance(thing, int | float):
        assert (thing.__doc__ or "").strip()


def test_reference_pages_are_up_to_date():
    """They contain every command, option and key, because they are generated from these."""
    for place, content in pages().items():
        assert place.read_text() == content, f"{place.name} is out of date: make reference"


@pytest.mark.parametrize(("path", "command"), [pytest.param(*one, id=one[0]) for one in commands()])
def test_a_command_is_short(path, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert sum(one.param_type_name == "option" for one in command.params) <= 15
    shown = CliRunner().invoke(app, [*path.split()[1:], "--help"])
    assert shown.exit_code == 0
    assert len(shown.output.splitlines()) <= 60, shown.output


def test_the_list_of_commands_says_what_each_of_them_says_of_itself():
    for name, summary in (pair for panel in PANELS.values() for pair in panel.items()):
        assert " ".join(load(name).help.split()).startswith(summary.removesuffix("."))


def test_shipped_files_name_no_machine_or_index():
    tracked = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout
    if not tracked:
        pytest.skip("not a git checkout")
    for name in tracked.split("\n"):
        path = REPOSITORY / name
        if not name or path.suffix in {".png", ".csv"} or path == Path(__file__):
            continue
        text = path.read_text(errors="ignore")
        for word in ("index-url", "find-links", "/simple", "file:///"):
            assert word not in text or name.startswith("tests/"), f"{name} holds {word}"
