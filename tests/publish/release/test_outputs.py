"""Outputs of many steps, read at once, are those that are read one by one."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp.publish.release.outputs import as_text, counts_of, from_text, with_filtered


def test_counts_of_many_steps_equal_those_of_each():
    counts = np.random.default_rng(0).integers(-50, 500, (20, 3))
    texts = [as_text(row) for row in counts]
    texts[7] = with_filtered(texts[7], {"counts": [1.0, 2.0, 3.0]})  # something stands beside one of them
    alike = counts_of([text for k, text in enumerate(texts) if k != 7], 3)
    assert (alike == np.delete(counts, 7, axis=0)).all()
    found = counts_of(texts, 3)
    assert found.dtype == counts.dtype and (found == np.stack([from_text(text) for text in texts])).all()


@pytest.mark.parametrize(
    "other",
    [
        None, '{"value":[1,2,3]}', '{"value":3}', as_text(np.array([1, 2])), as_text(np.array([1.0, 2.0, 3.0])),
        as_text(np.int64(3)), as_text(np.ones((1, 3), dtype=np.int64)),
    ],
)  # fmt: skip
def test_other_outputs_give_no_counts(other):
    text = as_text(np.array([1, 2, 3]))
    for texts in ([text, other, text], [text] * 5000 + [other], []):
        assert counts_of(texts, 3) is None


def test_outputs_that_are_not_arrays_give_no_counts():
    assert counts_of(['{"value":{"charged":0.1}}'] * 3, 3) is None
