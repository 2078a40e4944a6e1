"""Entry point of ``mrag`` and ``python -m mrag_cli``."""

from mrag_cli.cli.main import main

if __name__ == "__main__":
    main()
