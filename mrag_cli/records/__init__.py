"""The records of a marker stream and their JSON lines."""
