"""The demo, and what the set-up scripts say when they cannot do their work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "sample_corpus" / "demo.sh"


def _run(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", DEMO], env=environment, cwd="/", capture_output=True, text=True)


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which the project counts as installed, with a folder for temporary files."""
    programs = tmp_path / "environment with spaces" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    (programs / "mrag").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mrag_cli "$@"\n')
    (programs / "mrag").chmod(0o755)
    stamp = subprocess.run(
        ["/bin/sh", "-c", 'printf "%s\n" "$(cksum <"$0/pyproject.toml") $0"', ROOT.resolve()],
        capture_output=True,
        check=True,
    )
    (programs.parent / ".mrag-installed").write_bytes(stamp.stdout)
    (tmp_path / "temporary").mkdir()
    return {
        **os.environ,
        "MRAG_VENV": str(programs.parent),
        "TMPDIR": str(tmp_path / "temporary"),
        "PYTHONPATH": str(ROOT),
    }


@pytest.mark.slow
def test_the_demo_ends_with_the_new_fact(installed: dict[str, str], tmp_path: Path) -> None:
    """The demo answers, updates, answers with the edited document's fact, and leaves nothing behind."""
    done = _run(installed)
    assert done.returncode == 0, done.stdout + done.stderr
    before, _, after = done.stdout.partition("The same question again")
    assert "leaves at 18:10. On Sundays" in before
    assert "leaves at 19:45. On Sundays" in after
    assert "18:10" not in after
    assert not list((tmp_path / "temporary").iterdir())


def test_a_stage_that_fails_fails_the_demo(installed: dict[str, str], tmp_path: Path) -> None:
    """A stage before the last one of a pipe that fails is named, and the demo ends with 1."""
    mrag = Path(installed["MRAG_VENV"]) / "bin" / "mrag"
    mrag.write_text('#!/bin/sh\n[ "$1" = tag ] && exit 3\ncat >/dev/null\n')
    done = _run(installed)
    assert done.returncode == 1
    assert "mrag tag ended with exit code 3" in done.stderr
    assert not list((tmp_path / "temporary").iterdir())


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """Without Python and a compiler, both are named with the commands that install them, exit 2."""
    for program in ("dirname", "basename", "cksum", "cat"):
        found = next(
            Path(folder) / program for folder in ("/usr/bin", "/bin") if (Path(folder) / program).exists()
        )
        (tmp_path / program).symlink_to(found)
    done = _run({"PATH": str(tmp_path), "MRAG_VENV": str(tmp_path / "environment")})
    assert done.returncode == 2
    assert "Python 3.11" in done.stderr
    assert "C++ compiler" in done.stderr
    assert "apt-get install python3 python3-venv python3-dev g++" in done.stderr
    assert not (tmp_path / "environment").exists()


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path) -> None:
    """A MRAG_VENV with something else in it is refused before anything is installed, exit 2."""
    (tmp_path / "letter.txt").write_text("mine")
    done = _run({**os.environ, "MRAG_VENV": str(tmp_path)})
    assert done.returncode == 2
    assert "is not a virtual environment" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
