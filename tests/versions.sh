#!/usr/bin/env bash
# The fast tests, and one real capture, fix and undo, on every supported Python with its oldest and its newest TensorFlow.
# VERSIONS="3.12 3.13" and TENSORFLOW="newest" select some of them; LONG=1 adds the long tests of the instruments.
# Out: .cache/versions/summary.md, a table of what ran, and how long it took. Exit code: 1 if anything failed or an interpreter is
# missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VERSIONS="${VERSIONS:-3.11 3.12 3.13}"
TENSORFLOW="${TENSORFLOW:-oldest newest}"
LONG="${LONG:-}"
FAST_LIMIT="${FAST_LIMIT:-30m}"
REAL_LIMIT="${REAL_LIMIT:-30m}"
WORK="$PWD/.cache/versions"
SUMMARY="$WORK/summary.md"
REAL_TESTS=( # they measure time, so they run one after the other
  tests/test_cli.py::test_script_is_run_watched_and_reported
  tests/commands/test_fix.py::test_written_and_undone
)
INSTRUMENT_TESTS=(tests/capture/instrument) # call positions and the order of weak references depend on the interpreter
# Neither the interpreter nor TensorFlow changes what these find: make test runs them. (The schema and docs/rules.md are made from
# docstrings, which Python 3.13 indents otherwise; the identity of a change is that of a syntax tree.)
INDEPENDENT=(
  tests/test_action.py tests/test_archives.py tests/test_docs.py tests/test_repository.py tests/test_selection.py
  tests/test_site.py                  # files of the repository; make packages installs the archives on every Python
  tests/benchmarks tests/examples tests/traps  # texts of scripts, tables of benchmarks
  tests/export/test_in_browser.py tests/report/html/test_browser.py tests/tensorboard/test_in_browser.py
  tests/statistics/test_reference.py  # numbers of other programs
)

# The oldest release that pyproject.toml allows and that has wheels for this Python.
oldest_tensorflow() {
  case "$1" in
    3.11 | 3.12) echo 2.16.1 ;;
    *) echo 2.20.0 ;;
  esac
}

source tests/find_python.sh

# Bytecode is kept: without it, every process of pytest rewrites all tests, and every start of TensorFlow compiles its files.
unset PYTHONDONTWRITEBYTECODE

# An environment is made again if pyproject.toml has changed; otherwise what is in it is brought up to date.
install() { # interpreter, venv, requirement
  local stamp
  stamp="$("$1" --version) $(cksum <pyproject.toml)"
  if [[ "$(cat "$2/stamp" 2>/dev/null)" != "$stamp" ]]; then
    "$1" -m venv --clear "$2" || return
  fi
  if command -v uv >/dev/null; then
    uv pip install --upgrade --compile-bytecode --quiet --python "$2/bin/python" -e '.[examples,dev]' "$3" || return
  else
    "$2/bin/python" -m pip install --upgrade --upgrade-strategy eager --no-compile --quiet --disable-pip-version-check \
      -e '.[examples,dev]' "$3" || return
    # pip compiles on one core; some packages contain templates that are not Python.
    "$2/bin/python" -m compileall -q -j 0 "$2/lib" >/dev/null 2>&1 || true
  fi
  echo "$stamp" >"$2/stamp"
}

results=()
failed=0
note() {
  results+=("$1")
  echo "$1"
}

# Environment, tests, passed, failed, skipped, seconds.
row() {
  printf '| %s | %s | %s | %s | %s | %s |\n' "$@" >>"$SUMMARY"
}

# The counts of a JUnit file: passed, failed, skipped.
counts() {
  "$venv/bin/python" - "$1" <<'PYTHON' 2>/dev/null || echo "? ? ?"
import sys
import xml.etree.ElementTree as tree

suite = next(tree.parse(sys.argv[1]).iter("testsuite"))
total, failures, errors, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped"))
print(total - failures - errors - skipped, failures + errors, skipped)
PYTHON
}

run_tests() { # environment, what, limit, arguments of pytest
  local name="$1" what="$2" limit="$3" began=$SECONDS passed wrong skipped
  local junit="$venv/${what// /-}.xml"
  shift 3
  rm -f "$junit"
  echo "== $name: $what"
  if timeout --signal INT --kill-after 30 "$limit" "$venv/bin/python" -m pytest --junitxml "$junit" "$@"; then
    note "passed  $name: $what"
  else
    note "FAILED  $name: $what"
    failed=1
  fi
  read -r passed wrong skipped < <(counts "$junit")
  row "$name" "$what" "$passed" "$wrong" "$skipped" "$((SECONDS - began))"
}

mkdir -p "$WORK"
printf '| environment | tests | passed | failed | skipped | seconds |\n|---|---|---|---|---|---|\n' >"$SUMMARY"
processes="$(python3 -c 'import os; print(min(8, 1 + (os.cpu_count() or 1)))')" # many fast tests wait for child processes
instruments="tensorflow and not slow and not timed"
[[ -n "$LONG" ]] || instruments+=" and not long"

for version in $VERSIONS; do
  if ! python="$(find_python "$version")"; then
    note "MISSING Python $version"
    row "Python $version" "no interpreter" "" "" "" ""
    failed=1
    continue
  fi
  for age in $TENSORFLOW; do
    requirement=tensorflow-cpu
    [[ "$age" == oldest ]] && requirement="tensorflow-cpu==$(oldest_tensorflow "$version")"
    venv="$WORK/$version-$age"
    began=$SECONDS
    if ! install "$python" "$venv" "$requirement"; then
      note "FAILED  Python $version: $requirement could not be installed"
      row "Python $version $requirement" "not installed" "" "" "" "$((SECONDS - began))"
      failed=1
      continue
    fi
    name="$("$venv/bin/python" -c 'import platform; from importlib.metadata import version
print("Python", platform.python_version(), "TensorFlow", version("tensorflow-cpu"))')"
    row "$name" "installation" "" "" "" "$((SECONDS - began))"
    run_tests "$name" "fast tests" "$FAST_LIMIT" -n "$processes" --timeout 300 --hypothesis-profile quick \
      -m "not tensorflow and not long and not slow and not timed" "${INDEPENDENT[@]/#/--ignore=}"
    run_tests "$name" "instruments" "$REAL_LIMIT" -n logical --maxprocesses 4 --timeout 300 --hypothesis-profile quick \
      -m "$instruments" "${INSTRUMENT_TESTS[@]}"
    run_tests "$name" "capture, fix, undo" "$REAL_LIMIT" -m "tensorflow and not slow" "${REAL_TESTS[@]}"
  done
done

printf '\n'
printf '%s\n' "${results[@]}"
cat "$SUMMARY"
exit "$failed"
