"""The numbers that the tests of the R package expect of Python."""

import re
from pathlib import Path

import numpy as np
from relvec import RVR

R_TEST = Path(__file__).parents[2] / "r/tests/testthat/test-fit.R"

# R's data set cars: speeds in miles per hour, and the distances in feet that cars took to stop (Ezekiel 1930).
SPEED = np.repeat(
    [4.0, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25],
    [2, 2, 1, 1, 3, 2, 4, 4, 4, 3, 2, 3, 4, 3, 5, 1, 1, 4, 1],
)
# fmt: off
DISTANCE = np.array([
    2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26, 54, 32, 40, 32,
    40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85,
])
# fmt: on


def test_r_expects_the_default_fit_of_python():
    expected = [
        np.array(numbers.split(","), float) for numbers in re.findall(r"c\(([\d., ]+)\), tol", R_TEST.read_text())
    ]
    found = RVR().fit(SPEED[:, np.newaxis], DISTANCE).predict([[4.0], [11.3], [25.0]], return_std=True)
    assert len(expected) == 2
    # Processors differ in the last digits, and so does what the learning of the kernel stops at.
    for own, numbers in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, numbers, rtol=1e-4)
