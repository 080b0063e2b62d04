# Sourced by versions.sh and packages.sh.
find_python() { # 3.12 -> an interpreter, from PATH, pyenv or uv
  local candidate
  for candidate in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python \
    "$(command -v uv >/dev/null && uv python find --no-project "$1" 2>/dev/null)"; do
    # A pyenv shim is on PATH for versions that are not selected, so the interpreter is run once.
    if [[ -x "$candidate" ]] && "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}
