"""The stages: each a function from records to records; stages do not import each other."""
