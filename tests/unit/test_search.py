"""The search ends with a value or a status, for whatever residual."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasd.search import GREATEST, SMALLEST, Ending, middle, search

WINDOW = (1.0, 2.0)
ANYTHING = st.floats(allow_nan=True, allow_infinity=True)


@given(st.floats(0.05, 20.0), st.floats(1e-6, 1e6), st.floats(1e-3, 1e3))
def test_finds_the_window_of_a_growing_power(exponent, scale, start):
    found = search(lambda u: (math.exp(min(700.0, exponent * math.log(u / scale))), u), start, WINDOW)
    assert found.ending is Ending.FOUND
    assert WINDOW[0] <= found.residual <= WINDOW[1]
    assert found.payload == found.u
    assert found.trials <= 60


@given(st.floats(1e-6, 1e6), st.floats(1e-3, 1e3), st.booleans())
def test_a_jump_ends_on_the_side_above(place, start, cold):
    found = search(lambda u: (0.3 if u < place else 5.0, u), start, WINDOW, bisect=middle if cold else None)
    assert found.ending is Ending.JUMP
    assert found.residual == 5.0
    assert found.payload == found.u >= place
    assert found.u <= place * (1 + 1e-14)
    assert found.trials < 150


@given(st.data())
def test_ends_for_any_residual_at_all(data):
    """A residual that answers whatever Hypothesis likes, differently at every call."""
    calls = []

    def residual(u):
        assert SMALLEST <= u <= GREATEST or not calls
        calls.append(u)
        return data.draw(ANYTHING, label=f"c({u})"), u

    found = search(residual, data.draw(st.floats(1e-9, 1e9), label="start"), WINDOW)
    assert isinstance(found.ending, Ending)
    assert found.trials == len(calls) < 400
    if found.ending is Ending.FOUND:
        assert WINDOW[0] <= found.residual <= WINDOW[1]
    if found.ending is Ending.JUMP:
        assert found.residual > WINDOW[1]


@given(st.lists(ANYTHING, min_size=1, max_size=40), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40))
def test_ends_for_any_step_function(values, places):
    places = sorted(places)

    def residual(u):
        index = sum(u >= place for place in places)
        return values[index % len(values)], u

    found = search(residual, 1.0, WINDOW)
    assert found.trials < 400


def test_twenty_non_finite_trials_end_it():
    found = search(lambda u: (math.nan, u), 1.0, WINDOW)
    assert found.ending is Ending.NONFINITE
    assert found.trials == 20
    assert found.payload is None


def test_a_non_finite_trial_moves_towards_large_u():
    found = search(lambda u: (math.nan if u < 50.0 else u / 60.0, u), 1.0, WINDOW)
    assert found.ending is Ending.FOUND


def test_a_residual_that_stays_below_fails_with_a_status():
    assert search(lambda u: (0.1, u), 1.0, WINDOW).ending is Ending.FAILED


@pytest.mark.parametrize("start", [1.19, 1.3, 1.9])
def test_one_trial_where_the_start_is_right(start):
    assert search(lambda u: (u, u), start, WINDOW).trials == 1


def test_mutation_without_the_bracket_a_jump_never_ends():
    """The fixed-point proposal alone cycles between the two sides of a jump: the bracket is what ends it."""
    u, seen = 1.0, []
    for _ in range(200):
        c = 0.3 if u < 3.0 else 5.0
        seen.append(c)
        u *= math.sqrt(2.0) / c
    assert {0.3, 5.0} == set(seen)
