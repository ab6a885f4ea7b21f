"""Numbers of feasible rankings: the tables of the ACL paper, and what the theory says about any size."""

from __future__ import annotations

import math

import pytest

from argmaxable.core.errors import InputError
from argmaxable.theory.regions import Regions, count_regions, regions_table

# Grivas, Bogoychev & Lopez 2022, appendix C: rows are 1 to 10 classes, columns 1 to 10 features.
TABLE_2 = """
1 1 1 1 1 1 1 1 1 1
2 2 2 2 2 2 2 2 2 2
2 6 6 6 6 6 6 6 6 6
2 12 24 24 24 24 24 24 24 24
2 20 72 120 120 120 120 120 120 120
2 30 172 480 720 720 720 720 720 720
2 42 352 1512 3600 5040 5040 5040 5040 5040
2 56 646 3976 14184 30240 40320 40320 40320 40320
2 72 1094 9144 45992 143712 282240 362880 362880 362880
2 90 1742 18990 128288 557640 1575648 2903040 3628800 3628800
"""
TABLE_3 = """
1 1 1 1 1 1 1 1 1 1
2 2 2 2 2 2 2 2 2 2
4 6 6 6 6 6 6 6 6 6
7 18 24 24 24 24 24 24 24 24
11 46 96 120 120 120 120 120 120 120
16 101 326 600 720 720 720 720 720 720
22 197 932 2556 4320 5040 5040 5040 5040 5040
29 351 2311 9080 22212 35280 40320 40320 40320 40320
37 583 5119 27568 94852 212976 322560 362880 362880 362880
46 916 10366 73639 342964 1066644 2239344 3265920 3628800 3628800
"""


def rows(text: str) -> list[list[int]]:
    return [[int(number) for number in line.split()] for line in text.split("\n") if line]


def test_the_table_without_bias_is_table_2_of_the_acl_paper() -> None:
    assert regions_table(10, 10).tolist() == rows(TABLE_2)


def test_the_table_with_bias_is_table_3_of_the_acl_paper() -> None:
    assert regions_table(10, 10, bias=True).tolist() == rows(TABLE_3)


@pytest.mark.parametrize("bias", [False, True])
def test_a_single_count_is_the_entry_of_the_table(bias: bool) -> None:
    table = regions_table(12, 9, bias=bias)
    counts = [[count_regions(c, d, bias=bias).total for d in range(1, 10)] for c in range(1, 13)]
    assert table.tolist() == counts


def test_a_line_is_cut_by_the_ties_of_all_pairs_into_bounded_parts_and_two_ends() -> None:
    # One feature: every pair of classes ties at one point, C(C − 1)/2 of them in a generic head.
    for classes in range(2, 30):
        points = classes * (classes - 1) // 2
        assert count_regions(classes, 1, bias=True) == Regions(bounded=points - 1, unbounded=2)


def test_without_bias_no_region_is_bounded_and_as_many_are_left_as_were_unbounded_with_one() -> None:
    for classes in range(1, 12):
        for dims in range(1, 12):
            centred = count_regions(classes, dims)
            assert centred == Regions(0, count_regions(classes, dims, bias=True).unbounded)


@pytest.mark.parametrize("bias", [False, True])
def test_every_ranking_is_feasible_from_one_feature_less_than_classes_on(bias: bool) -> None:
    for classes in range(1, 40):
        for dims in (max(1, classes - 1), classes, classes + 7):
            regions = count_regions(classes, dims, bias=bias)
            assert regions == Regions(bounded=0, unbounded=math.factorial(classes))


def test_a_new_class_cuts_every_old_arrangement_once_for_each_class_before_it() -> None:
    # Deletion and restriction: N(C, d) = N(C − 1, d) + (C − 1) · N(C − 1, d − 1), and N(C, 0) = 1.
    table = regions_table(60, 25, bias=True)
    for classes in range(2, 61):
        before = [1, *table[classes - 2]]
        expected = [before[d] + (classes - 1) * before[d - 1] for d in range(1, 26)]
        assert table[classes - 1].tolist() == expected


def test_500_classes_in_100_dimensions_are_counted_exactly() -> None:
    # Σ_{k ≤ d} [C, C − k] are coefficients of (1 + x)(1 + 2x)…(1 + (C − 1)x), here multiplied out anew;
    # Python integers throughout: the count has 346 digits.
    coefficients = [1] + [0] * 100
    for number in range(1, 500):
        for k in range(100, 0, -1):
            coefficients[k] += number * coefficients[k - 1]
    signed = sum((-1) ** k * value for k, value in enumerate(coefficients))
    expected = Regions(bounded=abs(signed), unbounded=sum(coefficients) - abs(signed))
    assert count_regions(500, 100, bias=True) == expected
    assert type(regions_table(500, 100)[499, 99]) is int
    assert regions_table(500, 100)[499, 99] == expected.unbounded


@pytest.mark.parametrize(("classes", "dims", "what"), [(0, 3, "classes"), (3, 0, "dims"), (-2, 3, "classes")])
def test_sizes_below_one_are_refused_by_name(classes: int, dims: int, what: str) -> None:
    for count in (count_regions, regions_table):
        with pytest.raises(InputError, match=f"{what} must be at least 1, found {min(classes, dims)}"):
            count(classes, dims)
