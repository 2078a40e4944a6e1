"""How the tests run: Hypothesis without deadlines, and with Ctrl-C as a terminal gives it."""

import signal

from hypothesis import settings

# The first example may load a vocabulary on a busy machine.
settings.register_profile("mrag", deadline=None)
settings.load_profile("mrag")

# A shell lets what it starts in the background ignore Ctrl-C, and the commands under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
