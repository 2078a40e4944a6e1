from mrag_cli.ground import errors
from mrag_cli.ground.errors import InputError, MragError


def test_exit_codes() -> None:
    """Each kind of error has its own exit code, those of the module's tree."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MragError)]
    codes = {kind.__name__: kind.exit_code for kind in kinds}
    assert codes == {
        "MragError": 1,
        "UsageError": 2,
        "DocumentsFailed": 3,
        "InputError": 4,
        "IndexMissing": 10,
        "IndexLocked": 11,
        "IndexUnsupported": 12,
        "IndexCorrupt": 13,
        "ModelError": 20,
        "LimitReached": 21,
    }
    assert errors.__doc__ is not None
    assert all(name in errors.__doc__ and f" {code} " in errors.__doc__ for name, code in codes.items())


def test_input_errors_say_where() -> None:
    """Malformed input is said with its path and line, or its path alone."""
    assert str(InputError("s.jsonl", 3, "what")) == "s.jsonl:3: what"
    assert str(InputError("s.jsonl", None, "what")) == "s.jsonl: what"
