# Everything starts from an empty machine with python3.11+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV_VERSION := 0.13.7
# As many as there are cores: each more collects all tests and loads all kernels once more, for little time.
JOBS ?= $(shell python3 -c 'import os; print(os.cpu_count())')
# What no test imports is compiled by whoever does: tests of packages, tools, lexers, code for graphics cards.
UNUSED := /(tests?|cuda|lexers|mypyc?|setuptools)/
DATA ?= ../shared/data

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow check format bench paper truth tables faults calibration size walks golden lock clean signatures test-wheel wheel

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# uv installs the hashed lock; the library itself goes in editable, so a change to the code needs no new install.
$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Unless needs Python 3.11 or newer; call make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --quiet --require-hashes requirements.lock
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 -x '$(UNUSED)' $(VENV)/lib || true
	@touch $@

demo: $(READY) ## learn from an embedded table, print what depends on what, and when, and write report.html
	@$(BIN)/unless demo --report report.html

# A file's tests stay in one process; tests/conftest.py says which files come first. Some hundred processes are
# started: none of them compiles modules anew, even where Python may not keep what it compiles.
test: $(READY) ## run the tests
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m building.compile_all
	@$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "not slow"

test-slow: $(READY) ## run the tests that take minutes
	@$(BIN)/pytest -m slow

check: $(READY) ## format, lint, types, room contracts, architecture
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/pytest -q tests/architecture

size: $(READY) ## say how large the package is and how tangled (tests/architecture/size.py -v lists what it counts)
	@$(BIN)/python tests/architecture/size.py

walks: $(READY) ## list the modules that the most usual calls run through
	@$(BIN)/python tests/architecture/walks.py

format: $(READY) ## let ruff rewrite what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(READY) ## measure, in ratios from one run, into docs (two hours; DATA=folder with the data to measure on)
	@UNLESS_PEERS=.benchmarks/peers $(BIN)/python -m benchmarks --data $(DATA) --history benchmarks/history --write docs/benchmarks.md
	@$(BIN)/python -m benchmarks --only accuracy --data $(DATA) --write docs/recovery.md
	@$(BIN)/python -m benchmarks --only learners --data $(DATA) --write docs/learners.md
	@$(BIN)/python -m benchmarks --only scaling --plots docs/scaling --write docs/scaling.md

paper: $(READY) ## repeat the paper's experiments into docs/paper (QUICK=1: a few minutes, into build/paper)
	@$(BIN)/python -m studies.paper --out $(if $(QUICK),build/paper --quick,docs/paper)

truth: $(READY) ## judge what is said of tables whose law is known, into docs/accuracy.md (resumes; SEED=n; QUICK=1: into build/truth)
	@$(BIN)/python -m studies.truth --data $(DATA) $(if $(SEED),--seed $(SEED)) $(if $(QUICK),--quick)

tables: $(READY) ## judge what is said of numbers, holes and weights, into docs/accuracy.md (resumes; SEED=n; QUICK=1: into build/tables)
	@$(BIN)/python -m studies.tables $(if $(SEED),--seed $(SEED)) $(if $(QUICK),--quick)

faults: $(READY) ## kill, fill disks and open hostile files, into docs/reliability.md (resumes; SEED=n; QUICK=1: into build/faults)
	@$(BIN)/python -m studies.faults $(if $(SEED),--seed $(SEED)) $(if $(QUICK),--quick)

calibration: $(READY) ## compare the probabilities of links by CSIBMAP with known laws, into build/calibration (resumes; SEED=n; QUICK=1)
	@$(BIN)/python -m studies.calibration $(if $(SEED),--seed $(SEED)) $(if $(QUICK),--quick)

golden: $(READY) ## rewrite the golden files of the tests; look at the diff before you commit it
	@UNLESS_REWRITE_GOLDEN=1 $(BIN)/pytest -q tests/golden tests/studies/paper/test_repository.py tests/report/test_components.py

signatures: $(READY) ## list anew the types that kernels are called with, for the extension of a wheel
	@$(BIN)/python -m building.record

wheel: $(READY) ## build a wheel with machine code into dist (some minutes; needs a C compiler)
	@UNLESS_EXTENSION=1 VIRTUAL_ENV=$(VENV) $(BIN)/uv build --quiet --wheel --no-build-isolation --out-dir dist

test-wheel: $(READY) wheel ## test the newest wheel of dist, installed without numba
	@rm -rf build/wheel && $(PYTHON) -m venv build/wheel
	@VIRTUAL_ENV=build/wheel $(BIN)/uv pip sync --quiet --require-hashes requirements.lock
	@VIRTUAL_ENV=build/wheel $(BIN)/uv pip uninstall --quiet numba llvmlite
	@VIRTUAL_ENV=build/wheel $(BIN)/uv pip install --quiet --no-deps "$$(ls -t dist/*.whl | head -1)"
	@cd tests && UNLESS_KERNELS=extension ../build/wheel/bin/pytest -q -p no:cacheprovider -m "not slow" golden contracts kernels/test_backends.py

lock: $(READY) ## resolve the dependencies anew
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 --all-extras --group dev pyproject.toml -o requirements.lock > /dev/null

clean: ## remove the environment and every cache
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
