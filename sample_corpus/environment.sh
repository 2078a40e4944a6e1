# Read by demo.sh, tests/run.sh and .ci/run: one virtual environment with the project installed in it.
#
# The caller sets `root`, the project's folder. The environment is .venv there, or the folder that MRAG_VENV names.
# PYTHON names an interpreter of at least 3.11 to build it with; without it, one is looked for on the PATH.
# Only what POSIX sh has is used here.

# Set `python` to an interpreter of at least 3.11, or to nothing.
find_python() {
    for python in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            return
        fi
    done
    python=
}

# Print what the machine lacks to build the environment, one word a line: python, venv, headers, compiler.
missing_tools() {
    find_python
    if [ -z "$python" ]; then
        echo python
    else
        "$python" -c 'import ensurepip, venv' 2>/dev/null || echo venv
        headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
        [ -f "$headers/Python.h" ] || echo headers
    fi
    # hnswlib is compiled on installation. On macOS c++ is there even when the tools behind it are not, so it has to compile something.
    for compiler in ${CXX:+"$CXX"} c++ g++ clang++; do
        if echo '#include <vector>' | $compiler -x c++ -fsyntax-only - 2>/dev/null; then
            return
        fi
    done
    echo compiler
}

# Say on stderr what is missing and how to get it. Argument: the output of missing_tools.
explain_missing() {
    find_python
    name=$(basename -- "${python:-python3}")
    {
        echo "This machine lacks what the installation needs:"
        for tool in $1; do
            case $tool in
                python) echo "  - Python 3.11 or newer ($(python3 --version 2>/dev/null || echo 'no python3') on the PATH)" ;;
                venv) echo "  - the venv module of $python, with ensurepip" ;;
                headers) echo "  - the C headers of $python (Python.h)" ;;
                compiler) echo "  - a C++ compiler (c++, g++ or clang++)" ;;
            esac
        done
        echo "To get it:"
        echo "  Debian, Ubuntu:  sudo apt-get install $name $name-venv $name-dev g++"
        echo "  Fedora:          sudo dnf install $name $name-devel gcc-c++"
        echo "  macOS:           xcode-select --install; brew install python@3.13"
        echo "An interpreter that is not on the PATH can be named: PYTHON=/opt/python/bin/python3 sh …"
    } >&2
}

# Make the environment if need be, install the project into it, and put it first on the PATH.
# Argument: an extra of pyproject.toml, or nothing. Quick when nothing changed since the last time.
prepare_environment() {
    extra=$1
    venv=${MRAG_VENV:-$root/.venv}
    case $venv in
        /*) ;;
        *) venv=$PWD/$venv ;;
    esac
    stamp=$venv/.mrag-installed${extra:+-$extra}
    # The checkout is installed in place, so only another pyproject.toml or another checkout makes this stale.
    wanted="$(cksum <"$root/pyproject.toml") $root"
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
        install_project
    fi
    PATH=$venv/bin:$PATH
    export PATH
}

install_project() {
    missing=$(missing_tools)
    if [ -n "$missing" ]; then
        explain_missing "$missing"
        exit 2
    fi
    find_python
    if [ -f "$venv/pyvenv.cfg" ]; then
        if ! "$venv/bin/python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "Making the virtual environment $venv anew: its Python is gone or older than 3.11"
            "$python" -m venv --clear "$venv"
        fi
    elif [ -d "$venv" ] && [ -n "$(ls -A "$venv")" ]; then
        echo "$venv is not a virtual environment; set MRAG_VENV to a folder that is empty or does not exist" >&2
        exit 2
    else
        echo "Making the virtual environment $venv"
        "$python" -m venv "$venv"
    fi
    echo "Installing the project and its dependencies (the first time takes some minutes)"
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --editable "$root${extra:+[$extra]}"; then
        echo "The installation failed; pip's message is above. It needs the network, but only this once." >&2
        exit 1
    fi
    printf '%s\n' "$wanted" >"$venv/.mrag-installed"
    printf '%s\n' "$wanted" >"$stamp"
}
