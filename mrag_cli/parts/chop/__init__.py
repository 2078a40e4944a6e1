"""CHOP, without and with a model: documents run together told apart, their chunks prefixed."""
