"""Mutants of the modules in which a wrong number would be silent, and which tests notice them. Writes docs/measured/mutation.md.

A mutant is a module with one small change: another operator, comparison or constant, a condition turned round, a loop left
out. The changes are those of cosmic-ray; only the way they are run is our own, because Cosmic Ray edits files, and every edited
file makes Numba compile all kernels again. Here each mutant is imported from memory, in a process of its own, by the quick
tests of its module. Mutants are drawn by a seed, one of each module in turn, until the minutes are over. Answers are kept in
build/mutation.jsonl: what was tried is not tried again; `--again` asks about survivors once more, with the tests of today.

Run with:  make mutation MINUTES=60 SEED=1
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import sys
import time
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "src" / "temporaldp", ROOT / "tests"
ANSWERS, OUTPUT = ROOT / "build" / "mutation.jsonl", ROOT / "build" / "mutation.log"
EXPLAINED = ROOT / "benchmarks" / "mutation_survivors.toml"
QUICK, ALL = "not long and not slow and not spark and not browser", "not slow and not spark and not browser"

# The modules, and the files whose tests must notice.
MODULES = {
    "accounting/paper/arrivals": ["accounting/test_scalar", "accounting/test_series"],
    "accounting/exact/arrivals": ["accounting/test_exact", "accounting/test_exact_population"],
    "accounting/exact/supremum": ["accounting/test_exact_supremum", "kernels/test_recurrence"],
    "accounting/exact/online": ["accounting/test_exact_filter", "accounting/test_exact_odometer"],
    "accounting/paper/online": ["accounting/test_accountant"],
    "accounting/metric/method": ["accounting/test_metric"],
    "accounting/curve/pair_curves": ["accounting/test_pair_curve"],
    "accounting/curve/arrivals": ["accounting/test_curves", "accounting/test_curve_suprema"],
    "accounting/curve/grid": ["accounting/test_grid"],
    "accounting/profiles": ["kernels/test_search"],
    "verification/values": ["verification/test_mean_bounds"],
    "verification/leakage": ["verification/test_verification"],
    "planning/renewal": ["accounting/test_renewal"],
    "studies/uncertainty": ["correlation/test_confidence"],
    "planning/within_level": ["planning/test_within_level"],
    "planning/replan": ["planning/test_replan"],
    "planning/paper_plan": ["planning/test_budget"],
    "planning/exact_plan": ["planning/test_exact_plan"],
    "planning/search": ["planning/test_exact_plan"],
    "planning/noise": ["planning/test_noise"],
    "kernels/search": ["kernels/test_search"],
    "kernels/signs": ["accounting/test_exact_filter", "accounting/test_exact_odometer"],
    "kernels/lifting": ["kernels/test_lifting"],
    "mechanisms/concentrated": ["mechanisms/test_concentrated"],
    "mechanisms/discrete_noise": ["mechanisms/test_mechanisms"],
    "mechanisms/distances": ["mechanisms/test_distances", "accounting/test_metric"],
    "mechanisms/events": ["mechanisms/test_events"],
    "mechanisms/guarantee": ["mechanisms/test_mechanisms"],
    "mechanisms/likelihood_box": ["mechanisms/test_likelihood_box", "accounting/test_exact_arrivals"],
    "mechanisms/noise": ["mechanisms/test_mechanisms"],
    "mechanisms/output_table": ["mechanisms/test_mechanisms"],
    "mechanisms/simulation": ["mechanisms/test_simulation"],
}

# Left out: what changes the class of an exception or a decorator, what needs names as arguments, and what no float has.
LEFT_OUT = ("ExceptionReplacer", "RemoveDecorator", "VariableReplacer", "VariableInserter")
LIMIT = 120
"""Seconds of processor time that the tests of a mutant may take; without a change they take far less."""

BITS = ("BitOr", "BitAnd", "BitXor", "LShift", "RShift", "_Is", "_IsNot")


def silent(source):
    """Where a change shows in no number: imports, annotations, decorators, errors and what leads to them, strict zips, progress."""
    nodes, heads = [], []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Raise() | ast.keyword(arg="strict"):
                nodes.append(node)
            case ast.AnnAssign():
                nodes.append(node.annotation)
            case ast.FunctionDef():
                nodes += node.decorator_list
                heads.append(((node.lineno, 0), (node.body[0].lineno, 0)))
            case ast.ClassDef():
                nodes += node.decorator_list
            case ast.If(body=[ast.Raise()], orelse=[]):
                nodes.append(node.test)
            case ast.Call(func=ast.Name(id="part" | "progressed")):
                nodes.append(node)
    return heads + [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in nodes]


def mutants(source):
    """Places and the changes that can be made there, as (operator, occurrence)."""
    left_out, found = silent(source), defaultdict(list)
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if name.endswith(LEFT_OUT) or (name.endswith(BITS) and "ReplaceUnary" not in name):
            continue
        operator, occurrence = get_operator(name)(), 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                if not any(first <= start < last for first, last in left_out):
                    found[start].append((name, occurrence))
                occurrence += 1
    return [found[place] for place in sorted(found)]


def drawn(module, seed):
    """The module's mutants, in an order that the seed decides: places first, so that no place with many changes prevails."""
    source = (SOURCE / f"{module}.py").read_text()
    rng = random.Random(f"{seed} {module}")
    places = mutants(source)
    rng.shuffle(places)
    for changes in places:
        name, occurrence = rng.choice(changes)
        mutant = mutate_code(source, get_operator(name)(), occurrence)
        lines = list(zip(source.splitlines(), mutant.splitlines(), strict=False))
        number = next(k for k, (old, new) in enumerate(lines, 1) if old != new)
        yield {"module": module, "line": number, "before": lines[number - 1][0].strip(),
               "after": lines[number - 1][1].strip()}, mutant  # fmt: skip


class MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a text."""

    def __init__(self, module, text):
        self.name, self.path, self.text = f"temporaldp.{module.replace('/', '.')}", SOURCE / f"{module}.py", text

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self, origin=str(self.path)) if name == self.name else None

    def exec_module(self, module):
        exec(compile(self.text, self.path, "exec"), module.__dict__)  # it is the package's own text, but for one change


def tested(module, text, marks):
    """What the module's tests say of a text: survived, killed or too slow; and the seconds of processor time that it took."""
    OUTPUT.parent.mkdir(exist_ok=True)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
        output = os.open(OUTPUT, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.meta_path.insert(0, MutantFinder(module, text))
        import pytest

        files = [str(TESTS / f"{name}.py") for name in MODULES[module]]
        os._exit(pytest.main([*files, "-x", "-q", "-m", marks, "-p", "no:cacheprovider", f"--rootdir={ROOT}"]))
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    verdict = {0: "survived", 1: "killed"}.get(code, "too slow" if code < 0 else "killed")
    return verdict, round(used.ru_utime + used.ru_stime, 1)


def key(answer):
    return answer["module"], answer["line"], answer["before"], answer["after"]


def kept_answers():
    """The last answer about each mutant."""
    lines = ANSWERS.read_text().splitlines() if ANSWERS.exists() else []
    return {key(answer): answer for answer in map(json.loads, lines)}


def keep(answer):
    with ANSWERS.open("a") as file:
        file.write(json.dumps(answer) + "\n")
    print("{verdict:9} {module}:{line}  {before}  ->  {after}".format_map(answer), flush=True)


def try_mutants(modules, seed, minutes, again, marks):
    """A mutant of the module of which the fewest were tried, and so on until the time is over or there are no more."""
    end, kept = time.monotonic() + 60.0 * minutes, kept_answers()
    waiting = {module: drawn(module, seed) for module in modules}
    tried = Counter(answer["module"] for answer in kept.values())
    while waiting and time.monotonic() < end:
        module = min(waiting, key=lambda name: tried[name])
        mutant, text = next(waiting[module], (None, None))
        if mutant is None:
            del waiting[module]
            continue
        known = kept.get(key(mutant))
        if (known is None or known["verdict"] != "survived") if again else known is not None:
            continue
        verdict, seconds = tested(module, text, marks)
        tried[module] += 1
        keep(mutant | {"verdict": verdict, "seed": seed, "seconds": seconds, "again": again})


def require_that_tests_pass(modules):
    """Where every mutant was killed, tests might fail of themselves: a survivor shows that they pass."""
    survived = {answer["module"] for answer in kept_answers().values() if answer["verdict"] in {"survived", "itself"}}
    for module in set(modules) - survived:
        verdict, seconds = tested(module, (SOURCE / f"{module}.py").read_text(), QUICK)
        if verdict != "survived":
            raise SystemExit(f"the tests of {module} do not pass without any change: {OUTPUT}")
        keep({"module": module, "line": 0, "before": "", "after": "", "verdict": "itself", "seconds": seconds})


HEAD = """# Which changes of the code the tests notice

Each row is a module in which a wrong number would be silent. A *mutant* is the module with one small change, drawn by a seed from
those that [cosmic-ray](https://cosmic-ray.readthedocs.io/) knows: another operator, comparison or constant, a condition turned round, a loop left out. Its tests
are the quick ones of the files that `benchmarks/mutation.py` names for it. Left out are errors and what leads to them, annotations, imports and progress,
and what Numba compiles. {tried} mutants were tried (`make mutation`, seed {seeds}), at {places:,} places that could be changed: a sample, which finds
weak tests, and shows no module to be free of them. {killed} were noticed at once, {later} by tests that were added for it or that take long, and {left} are left, each with its reason below.

| module | tried | noticed at once | by added or long tests | left |
| --- | ---: | ---: | ---: | ---: |
"""


def written():
    """docs/measured/mutation.md: counts by module, and every mutant that is left, with why."""
    answers = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    history = defaultdict(list)
    for answer in answers:
        if answer["line"]:
            history[key(answer)].append(answer["verdict"])
    reasons = {
        (one["module"], one["before"], one["after"]): one["why"] for one in tomllib.loads(EXPLAINED.read_text())["left"]
    }
    counts, left = defaultdict(Counter), defaultdict(list)
    for (module, line, before, after), verdicts in history.items():
        fate = "left" if verdicts[-1] == "survived" else "later" if verdicts[0] == "survived" else "killed"
        counts[module].update([fate])
        if fate == "left":
            left[module].append((line, before, after, reasons.get((module, before, after), "not looked at yet")))
    whole = sum(counts.values(), Counter())
    places = sum(len(mutants((SOURCE / f"{module}.py").read_text())) for module in MODULES)
    seeds = " and ".join(sorted({str(answer["seed"]) for answer in answers if answer["line"]}))
    text = HEAD.format(
        tried=whole.total(), seeds=seeds, places=places, **{k: whole[k] for k in ("killed", "later", "left")}
    )
    for module in MODULES:
        count = counts[module]
        text += f"| `{module}.py` | {count.total()} | {count['killed']} | {count['later']} | {count['left']} |\n"
    text += "\n## What is left\n"
    for module in (name for name in MODULES if left[name]):
        text += f"\n`{module}.py`\n\n"
        for line, before, after, why in sorted(left[module]):
            text += f"- line {line}, `{before}` becomes `{after}`: {why}\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--module", action="append", choices=sorted(MODULES))
    parser.add_argument("--check", action="store_true", help="only look whether tests pass without any change")
    parser.add_argument("--again", action="store_true", help="try survivors once more, by the tests of today")
    parser.add_argument("--long", action="store_true", help="by the long tests as well")
    asked = parser.parse_args()
    for name in ("numpy", "scipy.optimize", "scipy.sparse", "numba", "pytest"):  # once, for all mutants
        importlib.import_module(name)
    sys.path[:0] = [str(TESTS)]
    modules = asked.module or list(MODULES)
    if asked.check:
        require_that_tests_pass(modules)
    else:
        try_mutants(modules, asked.seed, asked.minutes, asked.again, ALL if asked.long else QUICK)
    if asked.document is not None:
        asked.document.write_text(written())


if __name__ == "__main__":
    main()
