"""A reporter that keeps what it is told."""


class Heard:
    """Keeps the notices and the failures of a stage.

    Attributes:
        notices: what was said, in order.
        failures: name and reason of each document that failed.
    """

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.failures: list[tuple[str, str]] = []

    def notice(self, message: str) -> None:
        """Keep a notice."""
        self.notices.append(message)

    def failed(self, name: str, reason: str) -> None:
        """Keep a failure."""
        self.failures.append((name, reason))
