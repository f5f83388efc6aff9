# Everything a fresh machine needs is Python (3.11 or newer) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := demo
PAPER := paper

.PHONY: demo test test-kernels test-slow test-crashes test-random lint format picture bench bench-online bench-exact bench-delta bench-startup bench-population tables paper clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt hatchling editables
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	touch $@

demo: $(READY)  ## audit, plan, release and report on the bundled sample
	$(BIN)/temporaldp demo --output $(DEMO)

# The tests run on all cores already: threads inside BLAS would only get in each other's way.
test test-kernels test-slow test-crashes test-random: export OPENBLAS_NUM_THREADS := 1

test: $(READY) lint  ## everything that must pass
	$(BIN)/python -m pytest -n auto -m "not slow"

test-kernels: $(READY)  ## all tests twice: with compiled kernels throughout, and with NumPy alone
	TEMPORALDP_KERNELS=numba $(BIN)/python -m pytest -n auto
	TEMPORALDP_KERNELS=numpy $(BIN)/python -m pytest -n auto

test-slow: $(READY)  ## the tests that take long: more kills, larger data, deeper enumerations
	$(BIN)/python -m pytest -n auto -m slow

test-crashes: $(READY)  ## 500 processes killed and 1,000 steps raced for, on SQLite and PostgreSQL, by accountant and by noise plan
	$(BIN)/python -m pytest -n auto tests/release/test_crashes.py -rP

test-random: $(READY)  ## the property tests on new random cases, ten times as many as usual
	$(BIN)/python -m pytest -n auto --hypothesis-profile=random tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

picture: demo  ## the pictures in the README and in docs/plans.md
	cp $(DEMO)/audit.png $(DEMO)/comparison.png docs/

bench: $(READY)  ## docs/performance.md: every claim about speed, measured in one run (half an hour)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt clarabel gurobipy
	$(BIN)/python benchmarks/bench.py docs/performance.md

bench-online: $(READY)  ## docs/online.md: what an accountant and a ledger cost, step by step (two minutes)
	$(BIN)/python benchmarks/online.py docs/online.md

bench-exact: $(READY)  ## docs/exact.md: the exact leakage beside both bounds, on real and random correlations (ten minutes)
	$(BIN)/python benchmarks/exact.py docs/exact.md $(LONG)

bench-delta: $(READY)  ## docs/delta.md: what a delta gains and costs (some minutes)
	$(BIN)/python benchmarks/delta.py docs/delta.md

bench-startup: $(READY)  ## how long the package and the command line take to start (two minutes)
	$(BIN)/python benchmarks/startup.py

bench-population: $(READY)  ## the exact leakage of up to 100,000 people, each with matrices of their own (ten minutes)
	$(BIN)/python benchmarks/population.py

tables: $(READY)  ## docs/plans.md: the optimal plan against the other methods
	$(BIN)/python benchmarks/plan_table.py docs/plans.md

paper: $(READY)  ## docs/paper.md: the paper's figures, table and claims, reproduced (half a minute once the environment is there)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt gurobipy
	$(BIN)/temporaldp reproduce --output $(PAPER)
	cp $(PAPER)/claims.md docs/paper.md
	cp $(PAPER)/figure3.png docs/figure3.png

clean:
	rm -rf $(VENV) $(DEMO) $(PAPER) .mypy_cache .ruff_cache .pytest_cache .hypothesis
