"""How Hypothesis runs: without deadlines, since the first example may load a vocabulary on a busy machine."""

from hypothesis import settings

settings.register_profile("mrag", deadline=None)
settings.load_profile("mrag")
