# Tallyveil. `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROGRAM := $(VENV)/.program
STAMP := $(VENV)/.installed
WORKERS ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUTF8 := 1
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help program setup servers demo test test-slow check format bench bench-quick dist docs clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

program: $(PROGRAM) ## Create the environment and install the program alone, pinned with hashes

$(PROGRAM): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq python3-venv; \
	  else echo "Python's venv module is missing. Ask an administrator to install the package python3-venv."; exit 1; fi; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tallyveil needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(STAMP) ## The same with everything for tests, documentation and every table format

$(STAMP): $(PROGRAM) requirements-dev.txt
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.txt --requirement requirements-dev.txt
	@touch $@

demo: program ## The main job from end to end, on generated data
	@$(BIN)/tallyveil demo --out out/demo

check: setup ## Formatting, lint and types
	$(BIN)/ruff format --check src tests reproduction benchmarks examples
	$(BIN)/ruff check src tests reproduction benchmarks examples
	$(BIN)/mypy

servers: ## PostgreSQL, Chromium and Java for the tests that need them, where this machine allows it
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql; \
	  else echo "PostgreSQL is missing: its tests are skipped. Ask an administrator to install the package postgresql."; fi; }
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; \
	  else echo "Chromium is missing: the studio's tests in a browser are skipped. Ask an administrator to install the package chromium."; fi; }
	@command -v java >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; \
	  else echo "Java is missing: the tests on a Spark cluster are skipped. Ask an administrator to install the package openjdk-17-jre-headless."; fi; }

test: check servers ## Everything that must pass before a change lands
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not slow' --durations=20

test-slow: setup servers ## The long cross-checks as well, and property tests on new examples
	TALLYVEIL_HYPOTHESIS=explore $(BIN)/python -m pytest -n $(WORKERS)

format: setup ## Put the code in the house format
	$(BIN)/ruff format src tests reproduction benchmarks examples
	$(BIN)/ruff check --fix src tests reproduction benchmarks examples

bench: setup ## Measure against the peers, side by side; DATA=FOLDER for real tables; writes benchmarks/results.md
	$(BIN)/python -m benchmarks --pages $(if $(DATA),--data $(DATA))

bench-quick: setup ## The same at small sizes, in minutes; installs no peer
	$(BIN)/python -m benchmarks --quick --out results/benchmarks-quick

dist: program ## Build the wheel that a user installs, into dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

docs: setup ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## Remove what can be rebuilt
	rm -rf $(VENV) site out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
