"""The Typer app, and the one place where an error becomes an exit code."""

import io
import os
import sys
import traceback
from typing import Annotated

import typer
from typer.core import TyperGroup

import mrag_cli
from mrag_cli.cli.cache_command import cache
from mrag_cli.cli.chop_command import chop
from mrag_cli.cli.chunk_command import chunk
from mrag_cli.cli.console import say
from mrag_cli.cli.eval_command import evaluate
from mrag_cli.cli.extract_command import extract
from mrag_cli.cli.index_command import index
from mrag_cli.cli.info_command import info, verify
from mrag_cli.cli.query_command import query
from mrag_cli.cli.tag_command import tag
from mrag_cli.cli.update_command import update
from mrag_cli.cli.validate_command import validate
from mrag_cli.ground.errors import MragError


class _Commands(TyperGroup):
    """The commands in the order of the pipeline; what a command raises becomes a message and an exit code."""

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
    context_settings={"help_option_names": ["-h", "--help"]},
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


app.command()(tag)
app.command()(extract)
app.command()(validate)
app.command()(index)
app.command()(query)
app.command()(update)
app.command()(chop)
app.command("eval")(evaluate)
app.command()(chunk)
app.command()(info)
app.command()(verify)
app.command()(cache)


def main() -> None:
    """Run the command and leave with the exit code of what happened."""
    if isinstance(sys.stdout.buffer, io.RawIOBase):
        # With PYTHONUNBUFFERED set, a write to a pipe may write a part and say so, which nobody checks.
        sys.stdout = open(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False)  # noqa: SIM115
    app(prog_name="mrag")
