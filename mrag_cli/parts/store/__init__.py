"""The index directory: immutable segments and the manifest that names them."""
