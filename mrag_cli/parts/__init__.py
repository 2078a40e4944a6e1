"""The parts that stages are made of; the only rooms that touch the heavy libraries."""
