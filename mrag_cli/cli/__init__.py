"""The command line: parse, read, call one stage, write and render."""
