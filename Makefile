# Every target sets up what it needs by itself, from git, make and python3 alone.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test test-long test-peers coverage lint check format docs docs-serve release-check bench-peers bench-start reproduce-paper requirements clean

help:
	@echo "make demo         compare all explorers on the bundled datasets"
	@echo "make test         the whole test suite"
	@echo "make test-long    the checks that take minutes"
	@echo "make test-peers   the checks beside VowpalWabbit and OBP, in an environment of its own"
	@echo "make lint         format, lint, types, import contract"
	@echo "make check        lint, docs and test"
	@echo "make docs         the documentation as a site, links checked; docs-serve shows it"
	@echo "make release-check  wheel and source: built, read, installed and tried"
	@echo "make bench-peers  speed beside VowpalWabbit's, in an environment of its own"
	@echo "make bench-start  time to the first decision, beside VowpalWabbit's"
	@echo "make coverage     the quick tests, and the lines of src/melee that they run"
	@echo "make reproduce-paper  the paper's comparisons (SUITE=DIR for local data)"

# make-environment DIR REQUIREMENTS
define make-environment
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "python3 is %d.%d; MELEE needs 3.11 or later: set PYTHON=..." % sys.version_info[:2])'
	rm -rf $(1)
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(2)
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(1)/ready
endef

.venv/ready: requirements/dev.txt pyproject.toml
	$(call make-environment,.venv,requirements/dev.txt)

.venv-peers/ready: requirements/peers.txt requirements/obp.txt pyproject.toml
	$(call make-environment,.venv-peers,requirements/peers.txt)
	rm $@
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/obp.txt
	touch $@

.venv-docs/ready: requirements/docs.txt pyproject.toml
	$(call make-environment,.venv-docs,requirements/docs.txt)

.venv-release/ready: requirements/release.txt pyproject.toml
	$(call make-environment,.venv-release,requirements/release.txt)

demo: .venv/ready
	$(BIN)/melee demo

# Tests start many processes, each of which would compile every source that it imports.
unexport PYTHONDONTWRITEBYTECODE

QUICK := -m "not long" --numprocesses auto --dist worksteal

test: .venv/ready
	$(BIN)/python -m pytest $(QUICK)

test-long: .venv/ready
	$(BIN)/python -m pytest -m long

lint: .venv/ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint docs test

format: .venv/ready
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# site/VERSION, beside the versions that were built before. The variable is the theme's: no advertising.
docs: .venv-docs/ready
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m tools.site --out site

docs-serve: .venv-docs/ready
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs serve --livereload

# With every Python from 3.11 to 3.14 that there is; those that there are not, it names.
release-check: .venv-release/ready
	.venv-release/bin/python -m tools.release_check

# The files that we write for VowpalWabbit, read by VowpalWabbit, which plays in a benchmark too;
# estimates beside OBP's, on the logs that it brings.
test-peers: .venv-peers/ready
	.venv-peers/bin/python -m pytest tests/history tests/evaluation/test_obp.py tests/benchmark/test_vw_itself.py

bench-peers: .venv-peers/ready
	.venv-peers/bin/python -m benchmarks.peers --out benchmarks/results

bench-start: .venv-peers/ready
	.venv-peers/bin/python -m benchmarks.start --out benchmarks/results

# Machine code has no lines to see. So kernels are also interpreted, by the tests in tests/compiled
# and tests/agent/test_cold_start.py, beside its machine code; all others run as in `make test`.
coverage: .venv/ready
	$(BIN)/python -m pytest $(QUICK) --cov --cov-report=term-missing:skip-covered --cov-fail-under=95

# The paper's datasets come from OpenML; SUITE=DIR takes them from a directory.
SUITE ?= paper300
reproduce-paper: .venv/ready
	$(BIN)/python -m benchmarks.reproduce_paper --suite $(SUITE)

# Pin again, to the newest versions: names, versions and hashes only.
requirements:
	uv pip compile --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade requirements/dev.in -o requirements/dev.txt
	uv pip compile --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -c requirements/dev.txt requirements/peers.in -o requirements/peers.txt
	uv pip compile --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -c requirements/dev.txt requirements/docs.in -o requirements/docs.txt
	uv pip compile --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -c requirements/dev.txt requirements/release.in -o requirements/release.txt

clean:
	rm -rf .venv .venv-peers .venv-docs .venv-release site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
