#!/bin/sh
# All checks: environment, ruff, mypy, pytest. Stops at the first that fails.
# Arguments go to pytest: sh tests/run.sh -k stream
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
root=$(dirname -- "$here")
. "$root/sample_corpus/environment.sh"

heading() {
    printf '\n== %s\n' "$1"
}

heading "environment"
prepare_environment dev
echo "$venv: $("$venv/bin/python" --version)"

cd "$root"
# A test that means to set one of these sets it itself.
unset MRAG_MODEL MRAG_EMBEDDER MRAG_CACHE

heading "ruff check"
ruff check
heading "ruff format --check"
ruff format --check
heading "mypy"
mypy
heading "pytest"
pytest -n 2 "$@"
