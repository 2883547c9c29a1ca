"""Random small problems with an exact reference, and what must hold of every result; `benchmarks.rounding` runs it.

`losses`, `exact` and `reference` know the truth to sixty digits, `problems` draws functions, `settings` draws
calls, `checks` compares results with the truth, `reproducer` writes down what was found.
"""
