"""What a row's hash covers is the JSON of its fields, however it is spelled out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporaldp.publish.release.chain import LedgerRow, signed

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.none() | st.text()


@pytest.mark.long
@given(st.integers(0, 10**9), st.text(), NUMBERS, NUMBERS, st.none() | NUMBERS, st.booleans(), TEXTS, TEXTS, TEXTS)
def test_a_row_is_signed_as_canonical_json(step, time, parameter, epsilon, leakage, last, output, digest, key):
    row = LedgerRow(step, time, parameter, epsilon, leakage, last, output, digest, key, "hash")
    assert signed(row) == json.dumps(list(row)[:-1], separators=(",", ":"))


def test_equal_numbers_of_different_types_have_different_hashes():
    row = LedgerRow(0, "0", 0.0, 0.0, None, False, None, None, None, "")
    others = [row._replace(epsilon=-0.0), row._replace(epsilon=0), row._replace(last=0), row._replace(parameter=False)]
    assert len({signed(one) for one in (row, *others)}) == 5


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_rows_with_numbers_outside_of_json_are_refused(value):
    with pytest.raises(ValueError, match=r"finite|JSON"):
        signed(LedgerRow(0, "0", 0.1, value, None, False, None, None, None, ""))
