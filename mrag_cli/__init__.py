"""mrag: folders of documents into a semantic key-value index, answers within a token budget."""

__version__ = "0.1.0"
