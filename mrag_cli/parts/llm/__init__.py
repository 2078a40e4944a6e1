"""Language models: a client with a limiter, a cache of replies and a ledger; the extraction's prompts.

The only place that touches litellm, and only when a call is made.
"""
