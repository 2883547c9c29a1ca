"""What the proofs are made of: arrays, geometry, evaluations and their rounding, the estimate sequence, searches.

Nothing in here reads files, looks at a clock or checks what a user gave.  It may use `hasd._checks` alone.
"""
