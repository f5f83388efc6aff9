# Everything a fresh machine needs is Python (3.11 or newer) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := demo
PAPER := paper
TUMULT := .venv-tumult
PEERS := .venv-peers

# The tests start hundreds of commands: where no bytecode is kept, each of them compiles all that it imports, for two seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo docs test test-long test-slow lint format bench numbers reference constraints size clean

# By uv, which installs in seconds what takes pip minutes; by pip where uv cannot be had.
INSTALL := $(BIN)/python tools/install.py
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.cli: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) cli
	touch $@

$(READY): $(VENV)/.cli
	$(INSTALL) dev
	touch $@

demo: $(VENV)/.cli  ## audit, plan, release and report on the bundled sample
	$(BIN)/temporaldp demo --output $(DEMO)

# The tests run on all cores already: threads inside BLAS would only get in each other's way.
test test-long test-slow: export OPENBLAS_NUM_THREADS := 1

test: $(READY) lint  ## everything that must pass
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long and not slow and not spark and not browser"

test-long: $(READY)  ## tests that take a second or many, and those on PostgreSQL (half an hour or more); must pass before anything lands, too
	$(BIN)/python -m pytest -n auto --dist worksteal -m "long and not slow and not spark and not browser"

# `make test-slow` alone runs the tests that are marked slow; NAME is one of those below: make test-slow NAME=browser
test-slow:
	@$(MAKE) --no-print-directory slow.$(or $(NAME),all)

lint: $(READY)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## put code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## the documentation site, docs/_build/html/index.html; warnings are errors, and no network is needed
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --builder html docs docs/_build/html

# NAME is one of those below: make bench NAME=exact; without one, they are listed.
bench:
	@$(if $(NAME),$(MAKE) --no-print-directory bench.$(NAME),sed -n 's/^bench\.\([a-z-]*\):.*## /\1: /p' Makefile)

numbers: $(READY)  ## recompute the numbers in the prose of README.md and docs (five seconds)
	$(BIN)/python tools/check_numbers.py

reference: $(READY)  ## the pages that are made from the code: command line, project file, JSON schema
	$(BIN)/python tools/reference.py

constraints: $(READY)  ## pin what pyproject.toml asks for, with hashes (UPGRADE=--upgrade: at the newest versions)
	$(INSTALL) wheel
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --all-extras --no-annotate --no-header \
		$(UPGRADE) --output-file constraints.txt pyproject.toml

size: $(READY)  ## statements, files, constants and public names of each folder; functions that an audit and a release run through
	$(PYTHON) tools/size.py
	$(BIN)/python tools/paths.py

clean:
	rm -rf $(VENV) $(TUMULT) $(PEERS) $(DEMO) $(PAPER) docs/_build docs/api .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Tests for make test-slow NAME=...

slow.all: $(READY)  ## the tests that take long: more kills, larger data, deeper enumerations, more cases of every property
	$(BIN)/python -m pytest -n auto -m "(slow or long or hypothesis) and not browser" --hypothesis-profile=deep

slow.crashes: $(READY)  ## 500 processes killed and 1,000 steps raced for, on SQLite and PostgreSQL, by accountant and by noise plan
	$(BIN)/python -m pytest -n auto tests/publish/release/test_crashes.py -rP

slow.serve: $(READY)  ## the service: 1,000 kills of servers and databases under load, thousands of requests made from its description (a quarter of an hour)
	$(BIN)/python -m pytest tests/apps/serve -rP

slow.years: $(READY)  ## three years of hourly steps, three adopted histories, 200 kills, two writers, late files; SQLite and PostgreSQL (half an hour)
	$(BIN)/python -m pytest tests/publish/release/test_years.py -rP

slow.random: $(READY)  ## the property tests on new random cases, ten times as many as usual
	$(BIN)/python -m pytest -n auto -m "not spark and not browser" --hypothesis-profile=random tests

JAVA_NEEDED = @command -v java > /dev/null || { echo "this needs Java 17 or newer: apt-get install default-jre-headless" >&2; exit 1; }
PYSPARK = $(INSTALL) spark

slow.spark: $(READY)  ## traces on a real Spark with two workers; needs Java 17 or newer (Debian: default-jre-headless)
	$(JAVA_NEEDED)
	$(PYSPARK)
	$(BIN)/python -m pytest -m spark tests/lab/cluster

slow.tumult: $(READY) $(TUMULT)/.ready  ## sessions and budgets of Tumult Analytics on Spark; needs Java
	$(BIN)/python -m pytest -m spark tests/lab/adapters

slow.peers: $(READY) $(PEERS)/.ready  ## budgets typed into PipelineDP, SmartNoise and OpenDP on Polars (two minutes)
	$(BIN)/python -m pytest -m slow tests/lab/adapters/test_budget_programs.py

# Chromium is Debian's, or the one that TEMPORALDP_CHROMIUM names; playwright only speaks to it.
CHROMIUM_NEEDED = @command -v "$${TEMPORALDP_CHROMIUM:-chromium}" > /dev/null || { echo "this needs Chromium: apt-get install chromium, or its path in TEMPORALDP_CHROMIUM" >&2; exit 1; }
PLAYWRIGHT = $(INSTALL) browser

slow.browser: $(READY)  ## the page in a real Chromium (three minutes)
	$(CHROMIUM_NEEDED)
	$(PLAYWRIGHT)
	$(BIN)/python -m pytest -n auto -m browser tests/apps/browser

slow.wheel: $(READY)  ## the package as others install it: alone, with each extra alone, with the oldest versions allowed, by each Python (half an hour; ONLY="base 3.13-cli")
	$(INSTALL) wheel
	$(BIN)/python tools/check_wheel.py

# Tumult Analytics needs an environment of its own: older releases of NumPy, pandas and Spark than we do.
$(TUMULT)/.ready:
	@command -v java > /dev/null || { echo "Tumult Analytics needs Java: apt-get install default-jre-headless" >&2; exit 1; }
	$(PYTHON) -m venv $(TUMULT)
	$(TUMULT)/bin/python -m pip install --quiet --disable-pip-version-check tmlt-analytics==0.21.0 lazy-loader pydantic
	touch $@

# SmartNoise, and OpenDP on Polars, need an environment of their own: older releases of OpenDP and pandas than we do.
$(PEERS)/.ready:
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check pipeline-dp==0.3.1 smartnoise-sql==1.0.10 "opendp[polars]" lazy-loader pydantic scipy
	touch $@

# Tables, pictures and pages for make bench NAME=...

bench.page: $(READY)  ## docs/how-to/page.md: how soon the page answers a movement (a minute)
	$(CHROMIUM_NEEDED)
	$(PLAYWRIGHT)
	PYTHONPATH=tests/support $(BIN)/python benchmarks/page.py docs/how-to/page.md

bench.screenshots: $(READY)  ## docs/pictures/page.png and its siblings: what the page looks like
	$(CHROMIUM_NEEDED)
	$(PLAYWRIGHT)
	PYTHONPATH=tests/support $(BIN)/python benchmarks/screenshots.py docs/pictures

bench.pictures: $(READY)  ## the pictures in the README and in docs/, but for those of the page
	$(BIN)/python benchmarks/topic_pictures.py docs/pictures

bench.performance: $(READY)  ## benchmarks/recorded/performance.md: profiles, series, memory, linear-programming solvers (half an hour)
	$(INSTALL) bench
	PYTHONPATH=. $(BIN)/python benchmarks/bench.py benchmarks/recorded/performance.md

bench.engine: $(READY)  ## benchmarks/recorded/engine.md: what the exact engine costs, in units of a Python loop (five minutes)
	$(BIN)/python benchmarks/engine.py benchmarks/recorded/engine.md

bench.online: $(READY)  ## benchmarks/recorded/online.md: what an accountant and a ledger cost, step by step (half an hour)
	$(BIN)/python benchmarks/online.py benchmarks/recorded/online.md

bench.exact: $(READY)  ## benchmarks/recorded/exact.md: the exact leakage beside both bounds, on real and random correlations (ten minutes)
	$(BIN)/python benchmarks/exact.py benchmarks/recorded/exact.md $(LONG)

bench.quilt: $(READY)  ## benchmarks/recorded/one-statistic.md: noise on one statistic of a chain, against the Markov Quilt Mechanism (ten seconds)
	$(BIN)/python benchmarks/quilt.py benchmarks/recorded/one-statistic.md

# LFS is sample_50K_FR_LFS.csv.zip of github.com/opendp/dp-test-datasets
bench.labour: $(READY)  ## the table of docs/how-to/epsilon.md: OpenDP's tutorial data at three levels (half a minute; needs LFS=FILE)
	$(BIN)/python benchmarks/labour_force.py "$(LFS)"

bench.uncertainty: $(READY)  ## benchmarks/recorded/uncertainty.md: estimate, posterior and guarantee on all data sets, order 1 against 2 (ten minutes)
	$(BIN)/python benchmarks/uncertainty.py benchmarks/recorded/uncertainty.md

bench.models: $(READY)  ## how often plans exceed their level for the people that a history is a sample of, by models (an hour; POPULATIONS=60)
	$(BIN)/python benchmarks/model_choice.py $(POPULATIONS)

bench.years: $(READY)  ## a ledger of 500,000 steps: opening, a step, a report (half an hour, most of it to write the ledger)
	$(BIN)/python benchmarks/years.py $(STEPS)

bench.serve: $(READY)  ## benchmarks/recorded/service-load.md: 200 steps a second from 16 clients on PostgreSQL, 10,000 releases (ten minutes; Debian: postgresql)
	$(BIN)/python benchmarks/serve.py benchmarks/recorded/service-load.md

bench.delta: $(READY)  ## benchmarks/recorded/delta.md: what a delta gains and costs (some minutes)
	$(BIN)/python benchmarks/delta.py benchmarks/recorded/delta.md

bench.counts: $(READY)  ## benchmarks/recorded/counts.md: errors of smoothed counts, on real and simulated people (three minutes)
	$(BIN)/python benchmarks/counts.py benchmarks/recorded/counts.md

bench.scale: $(READY)  ## docs/how-to/scale.md: traces of 10^6 to 10^8 rows, and a cluster against one worker (a quarter of an hour; needs Java)
	$(JAVA_NEEDED)
	$(PYSPARK)
	$(BIN)/python benchmarks/scale.py docs/how-to/scale.md $(ROWS)

bench.startup: $(READY)  ## how long the package and the command line take to start (a minute)
	$(BIN)/python benchmarks/startup.py

bench.population: $(READY)  ## the exact leakage of up to 100,000 people, each with matrices of their own (ten minutes)
	$(BIN)/python benchmarks/population.py

bench.plans: $(READY)  ## benchmarks/recorded/plans.md: the optimal plan against the other methods
	$(BIN)/python benchmarks/plan_table.py benchmarks/recorded/plans.md

bench.pages: $(READY)  ## docs/measured: counts.md, speed.md and tightness.md from the tables in benchmarks/recorded (a second)
	$(BIN)/python benchmarks/pages.py docs/measured

bench.peers: bench.quilt bench.compare bench.pages  ## what other tools and bounds say, on docs/measured/tightness.md (three minutes; TPL=FOLDER)

bench.speed: bench.engine bench.performance bench.online bench.exact bench.delta bench.serve bench.pages  ## docs/measured/speed.md, measured again (an hour, on a quiet machine)

bench.tightness: bench.exact bench.uncertainty bench.delta bench.plans bench.peers  ## docs/measured/tightness.md, measured again (an hour)

# TPL is a folder with the program of the paper's authors (github.com/yangcao888/TPL); GNU Octave runs it (Debian: octave).
bench.compare: $(READY)  ## benchmarks/recorded/comparison.md: what each tool reports about one release (two minutes; TPL=FOLDER runs the authors' program, too)
	-$(MAKE) $(TUMULT)/.ready
	TPL="$(TPL)" TUMULT_PYTHON=$(TUMULT)/bin/python $(BIN)/python -W ignore benchmarks/compare.py benchmarks/recorded/comparison.md

bench.deployments: $(READY)  ## docs/measured/published-systems.md: records of published systems, audited without their data (ten seconds; needs the records)
	$(BIN)/python benchmarks/deployments.py docs/measured/published-systems.md

bench.paper: $(READY)  ## reproduction/README.md: the paper's figures, table and claims, reproduced (a minute once the environment is there)
	-$(INSTALL) bench
	$(BIN)/python -m reproduction --output $(PAPER)
	cp $(PAPER)/README.md reproduction/README.md
