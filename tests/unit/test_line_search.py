"""The search along a line, on functions of one variable whose minimum is known."""

import math
from itertools import product

import pytest

from hasd.methods import _line_search
from hasd.methods._line_search import BRISK, Look, Ray, wolfe
from hasd.objectives._images import Images, Point

BENDS, RISES, WIDTHS = (0.03, 0.1, 0.4, 0.7, 0.95), (0.5, 4.0, 16.0), (1e-2, 1e-3, 1e-4)


class SharpBend:
    """f falls with slope -1 up to a place and rises from there; the bend between the two is so wide."""

    flat = 0.3
    is_newton = True

    def __init__(self, place, rise, width):
        self.place, self.rise, self.width = place, rise, width

    def end(self, look):
        return look

    def look(self, t):
        left, right = -(t - self.place), self.rise * (t - self.place)
        top = max(left, right)
        w_left, w_right = (math.exp((z - top) / self.width) for z in (left, right))
        value = top + self.width * math.log(w_left + w_right)
        return Look(t, value, (self.rise * w_right - w_left) / (w_left + w_right), None)


def trials_in_all():
    """How many looks the search takes on all of these, each ending with a flat slope."""
    total = 0
    for place, rise, width in product(BENDS, RISES, WIDTHS):
        line = SharpBend(place, rise, width)
        start = line.look(0.0)
        found, trials = wolfe(line, start.f, start.slope, 1.0, 2.0**-52)
        assert found.f < start.f
        assert abs(found.slope) <= -line.flat * start.slope
        total += trials
    return total


def test_tangents_find_sharp_bends_in_two_thirds_of_the_looks(monkeypatch):
    """A mutation that leaves the tangents out shows what they save."""
    with_tangents = trials_in_all()
    monkeypatch.setattr(_line_search, "_tangents_meet", lambda low, high: math.nan)
    assert 3 * with_tangents <= 2 * trials_in_all()


@pytest.mark.parametrize("place", [1e-9, 0.3, 1e9])
def test_the_search_ends_near_the_minimum_of_a_parabola_of_any_width(place):
    class Parabola(SharpBend):
        is_newton = False

        def look(self, t):
            return Look(t, 0.5 * (t / place - 1.0) ** 2, (t / place - 1.0) / place, None)

    line = Parabola(place, 0.0, 0.0)
    found, _ = wolfe(line, 0.5, -1.0 / place, 1.0, 2.0**-52)
    assert abs(found.t - place) <= line.flat * place


class Lowered(Images):
    """A line on which f, the least of (t - 1)^2 + c^2 over c, is not known beyond t = `known`."""

    settles = True

    def __init__(self, known):
        self.known = known

    def move(self, point, direction, t):
        there = point.z + t * direction
        return Point(there, (there - 1.0) ** 2, None), 2.0 * (there - 1.0)

    def settle(self, point):
        return point if point.z <= self.known else Point(point.z, math.nan, None)


@pytest.mark.parametrize(("known", "again"), [(math.inf, False), (0.9, True)])
def test_a_search_begins_again_with_settled_looks_where_f_is_not_known_at_its_end(known, again):
    line = Ray(Lowered(known), Point(0.0, 1.0, None), 1.0, (0.0, 0.0, 0.0))
    found, trials = wolfe(line, 1.0, -2.0, 1.0, 2.0**-52)
    assert line.settles == again == (trials > BRISK)
    assert found.t <= known and found.f == (found.t - 1.0) ** 2 <= 0.1
