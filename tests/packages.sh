#!/usr/bin/env bash
# Builds the sdist and the wheel into dist/, checks their metadata, and installs each into an empty environment of every supported
# Python, where the command has to start, list the rules and analyse a saved run, and mypy has to find its types. Starts the wheel
# through uvx and pipx, too, where uv or pipx is installed. VERSIONS="3.12 3.13" selects some. Exit code: 1 if anything failed or an interpreter is missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VERSIONS="${VERSIONS:-3.11 3.12 3.13}"
ROOT="$PWD"
WORK="$ROOT/.cache/packages"
OUT="$ROOT/dist"
TYPED='import advisor
share: float | None = advisor.analyze_run("run").analysis.verdict.input_wait_share'

source tests/find_python.sh

install() { # venv, what to install
  local venv="$1"
  shift
  if command -v uv >/dev/null; then
    uv pip install --quiet --python "$venv/bin/python" "$@"
  else
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  fi
}

results=()
failed=0
note() { # exit code, label
  if [[ "$1" == 0 ]]; then results+=("passed  $2"); else results+=("FAILED  $2") && failed=1; fi
  echo "${results[-1]}"
}

finish() {
  printf '\n'
  printf '%s\n' "${results[@]}"
  exit "$failed"
}

try_command() { # label, the command line that starts the advisor
  local label="$1" run
  shift
  run="$(mktemp -d "$WORK/run-XXXXXX")"
  cp -R "$ROOT/tests/data/keras_fit/." "$run"
  (
    cd "$run" || exit 1 # not the repository, whose packages would be imported in place of the installed ones
    set -e
    "$@" --version
    "$@" --help >/dev/null
    "$@" rules | grep serial-map >/dev/null
    "$@" explain serial-map >/dev/null
    "$@" skill | grep '^name: tfdata-advisor' >/dev/null
    "$@" analyze --quiet --json - . | grep '"schema_version":' >/dev/null
    test -s report.html
  )
  note $? "$label"
  rm -rf "$run"
}

rm -rf "$WORK" "$OUT"
mkdir -p "$WORK"
first="${VERSIONS%% *}"
python="$(find_python "$first")" || { note 1 "Python $first is missing"; finish; }
"$python" -m venv "$WORK/build" && install "$WORK/build" build twine mypy || { note 1 "build, twine and mypy could not be installed"; finish; }
"$WORK/build/bin/python" -m build --outdir "$OUT" . >"$WORK/build.log" 2>&1
note $? "sdist and wheel build" || true
[[ "$failed" == 0 ]] || { tail -20 "$WORK/build.log" >&2; finish; }
"$WORK/build/bin/python" -m twine check --strict "$OUT"/*
note $? "metadata"
ls -l "$OUT"

for version in $VERSIONS; do
  python="$(find_python "$version")" || { note 1 "Python $version is missing"; continue; }
  for archive in "$OUT"/*.whl "$OUT"/*.tar.gz; do
    venv="$WORK/$version-${archive##*.}"
    label="Python $version, $(basename "$archive")"
    "$python" -m venv "$venv" && install "$venv" "$archive" || { note 1 "$label could not be installed"; continue; }
    try_command "$label" "$venv/bin/advisor"
  done
  (cd "$WORK" && "$WORK/build/bin/python" -m mypy --config-file /dev/null --strict --python-executable "$WORK/$version-whl/bin/python" -c "$TYPED")
  note $? "Python $version, types"
  note "$(cd "$WORK" && "$WORK/$version-whl/bin/python" -m advisor --version >/dev/null; echo $?)" "Python $version, python -m advisor"
done

wheel="$(echo "$OUT"/*.whl)"
if command -v uvx >/dev/null; then
  try_command "uvx" uvx --quiet --python "$(find_python "$first")" --from "$wheel" tfdata-advisor
fi
pipx=(pipx)
command -v pipx >/dev/null || pipx=(uvx --quiet pipx)
if command -v "${pipx[0]}" >/dev/null; then
  try_command "pipx run" "${pipx[@]}" run --quiet --spec "$wheel" tfdata-advisor
fi
finish
