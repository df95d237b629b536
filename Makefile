# On a machine with only Python and make: `make demo` and `make test` do everything, set-up included.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed

# the sources, in build/pages, and the site; a warning is an error
SITE = $(BIN)/python docs/_site/stage.py build/pages && \
    $(BIN)/sphinx-build -q -W --keep-going -j 2 -c docs -d build/doctrees build/pages build/site

.PHONY: demo test test-slow test-all wheel-test check docs format clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The slow tests but those of `all_pairs`, which are part of test-all: every folder in one of these commands, which
# are run after each other, since a process keeps what it has compiled.
SLOW := $(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not all_pairs"

test-slow: $(STAMP)
	$(SLOW) tests/run tests/engine tests/symbolic tests/systems tests/errata tests/random_systems
	$(SLOW) tests/analysis tests/geometry
	$(SLOW) tests/bodies tests/integrators
	$(SLOW) tests/test_*.py tests/bench tests/docs tests/examples tests/faults tests/outside tests/scenes tests/studies tests/web

test-all: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m ""

wheel-test: $(STAMP)
	$(BIN)/python -m pytest -q .ci/test_wheel.py

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(SITE)
	$(BIN)/python -m pytest -q tests/docs/test_site.py --site build/site

docs: $(STAMP)
	$(SITE)
	@echo "open build/site/index.html"

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache build demo-output

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)
