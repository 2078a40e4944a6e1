"""The Typer app, and the one place where an error becomes an exit code."""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import mrag_cli
from mrag_cli.cli.console import say
from mrag_cli.ground.errors import MragError

_CONTEXT = {"help_option_names": ["-h", "--help"]}
_COMMANDS = {
    "tag": "tag_command.tag",
    "extract": "extract_command.extract",
    "validate": "validate_command.validate",
    "index": "index_command.index",
    "query": "query_command.query",
    "update": "update_command.update",
    "chop": "chop_command.chop",
    "eval": "eval_command.evaluate",
    "chunk": "chunk_command.chunk",
    "info": "info_command.info",
    "verify": "info_command.verify",
    "cache": "cache_command.cache",
}
"""Module and function of each command, in the order of the pipeline."""


class _OnDemand(Mapping[str, Any]):
    """The commands, each imported and made when it is asked for: to make all takes longer than a query."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            module, function = _COMMANDS[name].split(".")
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=_CONTEXT)
            alone.command(name)(getattr(import_module(f"mrag_cli.cli.{module}"), function))
            self._made[name] = typer.main.get_command(alone)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Commands(TyperGroup):
    """The commands in the order of the pipeline; what a command raises becomes a message and an exit code."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.commands = _OnDemand()  # type: ignore[assignment] # nobody adds to it

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override] # noqa: ARG002
        return list(self.commands)

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override] # typer's own context
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python would complain once more when it flushes stdout at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None
        except (KeyboardInterrupt, MragError, OSError) as error:
            cause: BaseException = error
            code, message = _ending(error)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if _is_usage_error(error):
                raise
            cause = error
            code = 1
            message = f"{type(error).__name__}: {error}; this is a bug: `mrag --debug …` shows where"
        else:
            return result
        if ctx.params.get("debug"):
            traceback.print_exception(cause)
        say(message)
        raise typer.Exit(code)


def _ending(error: KeyboardInterrupt | MragError | OSError) -> tuple[int, str]:
    if isinstance(error, KeyboardInterrupt):
        return 130, "interrupted"
    if isinstance(error, MragError):
        return error.exit_code, f"error: {error}"
    return 1, f"error: {error.filename or 'operating system'}: {error.strerror or error}"


def _is_usage_error(error: Exception) -> bool:
    """Tell whether Typer itself explains this error (its base class has no public name)."""
    return hasattr(error, "exit_code") and hasattr(error, "format_message")


app = typer.Typer(
    name="mrag",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mrag {mrag_cli.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Turn folders of documents into a semantic key-value index, and query it within a token budget.

    \b
    Offline pipeline:
      mrag tag docs | mrag extract | mrag validate | mrag index -o kb
    Question:
      mrag query kb "How long does the battery last?" --budget 640
    Nightly update:
      mrag tag docs --changed-since kb | mrag extract | mrag validate | mrag update kb
    """


def main() -> None:
    """Run the command and leave with the exit code of what happened."""
    if isinstance(sys.stdout.buffer, io.RawIOBase):
        # With PYTHONUNBUFFERED set, a write to a pipe may write a part and say so, which nobody checks.
        sys.stdout = open(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False)  # noqa: SIM115
    app(prog_name="mrag")
