"""The search ends with a value or a status, for whatever residual."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasd._math.search import FIXED_POINT_TRIALS, GREATEST, NONFINITE_LIMIT, SMALLEST, Ending, middle, search

WINDOW = (1.0, 2.0)
ANYTHING = st.floats(allow_nan=True, allow_infinity=True)


@given(st.floats(0.05, 20.0), st.floats(1e-6, 1e6), st.floats(1e-3, 1e3))
def test_the_search_finds_the_window_of_a_growing_power(exponent, scale, start):
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
def test_the_search_ends_for_any_residual_at_all(data):
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
def test_the_search_ends_for_any_step_function(values, places):
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
    assert found.payload is None and math.isnan(found.residual)
    assert found.u > 1.0  # the last one tried


def test_a_non_finite_trial_moves_towards_large_u():
    found = search(lambda u: (math.nan if u < 50.0 else u / 60.0, u), 1.0, WINDOW)
    assert found.ending is Ending.FOUND


def test_a_residual_that_stays_below_fails_with_a_status():
    assert search(lambda u: (0.1, u), 1.0, WINDOW).ending is Ending.FAILED


@pytest.mark.parametrize("start", [1.19, 1.3, 1.9])
def test_one_trial_is_enough_where_the_start_is_right(start):
    assert search(lambda u: (u, u), start, WINDOW).trials == 1


def test_mutation_without_the_bracket_a_jump_never_ends():
    """The fixed-point proposal alone cycles between the two sides of a jump: the bracket is what ends it."""
    u, seen = 1.0, []
    for _ in range(200):
        c = 0.3 if u < 3.0 else 5.0
        seen.append(c)
        u *= math.sqrt(2.0) / c
    assert {0.3, 5.0} == set(seen)


def trials_of(residual, start, **options):
    """The points that a search looks at, and what it finds."""
    seen = []

    def remembered(u):
        seen.append(u)
        return residual(u), u

    return seen, search(remembered, start, WINDOW, **options)


def test_the_constants_are_those_of_the_text():
    assert (NONFINITE_LIMIT, FIXED_POINT_TRIALS) == (20, 3)
    assert math.log2(GREATEST) == -math.log2(SMALLEST) == 1000.0
    assert middle(4.0, 9.0) == 6.0 and middle(SMALLEST, GREATEST) == 1.0


def test_a_proposal_aims_at_the_windows_middle_or_at_the_target():
    """From u to u aim / c(u)."""
    assert trials_of(lambda u: u, 5.0)[0] == [5.0, 5.0 * (math.sqrt(2.0) / 5.0)]
    assert trials_of(lambda u: u, 5.0, target=1.25)[0] == [5.0, 1.25]


@pytest.mark.parametrize(("c", "second"), [(0.0, 12.0), (-1.0, 12.0), (math.nan, 12.0), (math.inf, 0.75)])
def test_a_residual_that_cannot_be_divided_by_moves_u_fourfold(c, second):
    """Up where c is not above 0 or is NaN, down where it is infinite."""
    assert trials_of(lambda u: c if u == 3.0 else 1.5, 3.0)[0] == [3.0, second]


def test_after_three_proposals_every_other_one_bisects():
    """Below 8 the residual sends u up by 1.1 only; the fourth and the sixth proposal take the bracket's middle."""
    aim = math.sqrt(2.0)
    seen, _ = trials_of(lambda u: aim / 1.1 / 2.0**0.5 if u < 8.0 else 5.0, 1.0)
    up = 1.1 * 2.0**0.5
    assert seen[1:4] == pytest.approx([up, up**2, up**3])
    assert seen[4] == pytest.approx(middle(up**3, GREATEST))  # nothing above is known yet
    assert seen[5] == pytest.approx(seen[4] * aim / 5.0)
    assert seen[6] == pytest.approx(middle(up**3, seen[5]))


def test_with_a_rule_of_its_own_only_that_rule_proposes():
    asked = []

    def rule(low, high):
        asked.append((low, high))
        return 0.5 * (low + min(high, 64.0))

    seen, found = trials_of(lambda u: 0.1 if u < 40.0 else 9.0 if u > 50.0 else 1.5, 1.0, bisect=rule)
    assert asked == [(1.0, GREATEST), (32.5, GREATEST)] and seen == [1.0, 32.5, 48.25]
    assert (found.u, found.residual, found.payload, found.trials) == (48.25, 1.5, 48.25, 3)


@pytest.mark.parametrize("end", WINDOW)
def test_the_windows_ends_belong_to_it(end):
    assert search(lambda u: (end, u), 7.0, WINDOW).ending is Ending.FOUND


def test_the_bracket_never_grows():
    """Residuals out of order: a trial above the window at a larger u than an earlier one does not open the bracket."""
    asked = []

    def rule(low, high):
        asked.append((low, high))
        return {1: 8.0, 2: 16.0, 3: 2.0, 4: 1.0}.get(len(asked), low)

    answers = {4.0: 0.1, 8.0: 9.0, 16.0: 9.0, 2.0: 0.1, 1.0: 0.1}
    search(lambda u: (answers[u], u), 4.0, WINDOW, bisect=lambda low, high: rule(low, high))
    assert asked == [(4.0, GREATEST), (4.0, 8.0)]  # 16 lies outside: the search ends there


def test_a_search_that_failed_says_so_in_every_field():
    found = search(lambda u: (0.1, u), 1.0, WINDOW)
    assert (found.ending, found.payload) == (Ending.FAILED, None) and math.isnan(found.residual)
    assert found.u >= 0.99 * GREATEST  # where it was looked for in vain
    jump = search(lambda u: (0.3 if u < 2.0 else 5.0, u), 1.0, WINDOW)
    assert (jump.residual, jump.payload) == (5.0, jump.u) and 2.0 <= jump.u <= 2.0 * (1 + 2.0**-50)


def test_non_finite_trials_are_counted_in_a_row():
    """Nineteen, a finite one, nineteen again: the search goes on."""
    calls = []

    def residual(u):
        calls.append(u)
        return (0.1 if len(calls) == 20 else math.nan if len(calls) < 40 else 1.5), u

    found = search(residual, SMALLEST * 4.0, WINDOW)
    assert found.ending is Ending.FOUND and found.trials == 40


def test_the_bracket_ends_at_machine_resolution():
    """Where the two sides are neighbours nothing is between them to be tried."""
    place = 3.0
    seen, found = trials_of(lambda u: 0.3 if u < place else 5.0, 1.0)
    assert found.ending is Ending.JUMP and len(set(seen)) == len(seen) < 120


def test_a_non_finite_trial_closes_the_bracket_from_below():
    asked = []

    def rule(low, high):
        asked.append((low, high))
        return 8.0

    search(lambda u: (math.nan if u < 5.0 else 1.5, u), 4.0, WINDOW, bisect=rule)
    assert asked == [(4.0, GREATEST)]


@pytest.mark.parametrize("start", [2.0, 4.0])
def test_a_proposal_on_the_brackets_end_is_no_proposal(start):
    """2 proposes 4, and 4 proposes 2: what was tried already is not tried again, the middle is."""
    seen, found = trials_of(lambda u: {2.0: 0.625, 4.0: 2.5}.get(u, 1.5), start, target=1.25)
    assert seen == pytest.approx([start, 6.0 - start, middle(2.0, 4.0)])
    assert found.ending is Ending.FOUND


def test_a_small_residual_is_still_divided_by():
    assert trials_of(lambda u: 0.25 if u == 3.0 else 1.5, 3.0, target=1.0)[0] == [3.0, 12.0]
    assert trials_of(lambda u: 0.01 if u == 3.0 else 1.5, 3.0, target=1.0)[0] == [3.0, pytest.approx(300.0)]
