"""What happens around a method: the counted oracle, the loop, stopping, the trace, bounds and the result.

It knows objectives and the mathematics below it, and no method by name.
"""
