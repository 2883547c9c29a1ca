"""A run written to disk and read back.

It stands beside `hasd._run`, of whose record it takes a picture; a run without a checkpoint does not come here.
"""
