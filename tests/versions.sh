#!/usr/bin/env bash
# The fast tests, and one real capture, fix and undo, on every supported Python with its oldest and its newest TensorFlow.
# VERSIONS="3.12 3.13" and TENSORFLOW="newest" select some of them. Exit code: 1 if anything failed or an interpreter is missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VERSIONS="${VERSIONS:-3.11 3.12 3.13}"
TENSORFLOW="${TENSORFLOW:-oldest newest}"
FAST_LIMIT="${FAST_LIMIT:-30m}"
REAL_LIMIT="${REAL_LIMIT:-30m}"
REAL_TESTS=( # they measure time, so they run one after the other
  tests/test_cli.py::test_script_is_run_watched_and_reported
  tests/commands/test_fix.py::test_written_and_undone
)
INSTRUMENT_TESTS=(tests/capture/instrument) # call positions and the order of weak references depend on the interpreter

# The oldest release that pyproject.toml allows and that has wheels for this Python.
oldest_tensorflow() {
  case "$1" in
    3.11 | 3.12) echo 2.16.1 ;;
    *) echo 2.20.0 ;;
  esac
}

source tests/find_python.sh

install() { # interpreter, venv, requirement
  "$1" -m venv --clear "$2" || return
  if command -v uv >/dev/null; then
    uv pip install --compile-bytecode --quiet --python "$2/bin/python" -e '.[examples,dev]' "$3"
  else
    "$2/bin/python" -m pip install --quiet -e '.[examples,dev]' "$3"
  fi
}

results=()
failed=0
note() {
  results+=("$1")
  echo "$1"
}

run_tests() { # label, limit, arguments of pytest
  local label="$1" limit="$2"
  shift 2
  echo "== $label"
  if timeout --signal INT --kill-after 30 "$limit" "$venv/bin/python" -m pytest "$@"; then
    note "passed  $label"
  else
    note "FAILED  $label"
    failed=1
  fi
}

for version in $VERSIONS; do
  if ! python="$(find_python "$version")"; then
    note "MISSING Python $version"
    failed=1
    continue
  fi
  for age in $TENSORFLOW; do
    requirement=tensorflow-cpu
    [[ "$age" == oldest ]] && requirement="tensorflow-cpu==$(oldest_tensorflow "$version")"
    venv="$PWD/.cache/versions/$version-$age"
    if ! install "$python" "$venv" "$requirement"; then
      note "FAILED  Python $version: $requirement could not be installed"
      failed=1
      continue
    fi
    name="$("$venv/bin/python" -c 'import platform; from importlib.metadata import version
print("Python", platform.python_version(), "TensorFlow", version("tensorflow-cpu"))')"
    run_tests "$name: fast tests" "$FAST_LIMIT" -n logical --maxprocesses 8 --hypothesis-profile quick \
      -m "not tensorflow and not long and not slow and not timed"
    run_tests "$name: instruments" "$REAL_LIMIT" -n logical --maxprocesses 4 -m "tensorflow and not slow and not timed" \
      "${INSTRUMENT_TESTS[@]}"
    run_tests "$name: capture, fix, undo" "$REAL_LIMIT" -m "tensorflow and not slow" "${REAL_TESTS[@]}"
  done
done

printf '\n'
printf '%s\n' "${results[@]}"
exit "$failed"
