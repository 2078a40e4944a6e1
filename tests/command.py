"""The command in this process: the app itself, without a process's start."""

import os
from typing import Any

from typer.testing import CliRunner, Result

from mrag_cli.cli.main import app


def run(*arguments: object, code: int = 0, given: str | bytes = b"", **environment: Any) -> Result:
    """Run the command with no setting from outside but ``environment``, and check its exit code."""
    cleaned: dict[str, Any] = {name: None for name in os.environ if name.startswith("MRAG_")}
    result = CliRunner().invoke(
        app, [*map(str, arguments)], input=given, env={**cleaned, **environment}, prog_name="mrag"
    )
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result
