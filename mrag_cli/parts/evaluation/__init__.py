"""Measuring retrieval: data sets, systems, statistics, the report and its pictures."""
