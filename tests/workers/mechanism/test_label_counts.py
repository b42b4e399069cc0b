from __future__ import annotations

import numpy as np
import pytest
import torch

from workers.mechanism.label_counts import frequencies_from, label_counts

ABSENT = 65_535


def test_a_row_unit_moves_one_count_by_one() -> None:
    labels = np.array([0, 1, 1, 2, 1], dtype=np.uint16)
    full = label_counts(labels, categories=4)
    assert full.values[0].tolist() == [1, 3, 1, 0]
    assert full.sensitivities == (1.0,)
    for row in range(len(labels)):
        zeroed = labels.copy()
        zeroed[row] = ABSENT
        assert float((full.values[0] - label_counts(zeroed, categories=4).values[0]).double().norm()) == 1.0


def test_a_unit_of_many_rows_is_bounded_by_its_declared_maximum() -> None:
    labels = np.array([2] * 9 + [0, 1] + [1], dtype=np.uint16)
    starts = np.array([0, 9, 11, 12])
    full = label_counts(labels, categories=3, unit_starts=starts, max_rows_per_unit=4)
    assert full.sensitivities == (4.0,)
    assert full.values[0].tolist() == [1, 2, 4]
    zeroed = np.where(np.arange(12) < 9, ABSENT, labels)
    without = label_counts(zeroed, categories=3, unit_starts=starts, max_rows_per_unit=4)
    assert float((full.values[0] - without.values[0]).double().norm()) <= 4.0


def test_frequencies_are_positive_and_sum_to_one() -> None:
    for counts in ([10.0, -3.0, 30.0], [-1.0, -2.0, -3.0], [0.0, 0.0, 0.0], [1e9, 1.0, -1e9]):
        frequencies = frequencies_from(torch.tensor(counts, dtype=torch.float64))
        assert sum(frequencies) == pytest.approx(1.0)
        assert min(frequencies) > 0.0
    assert frequencies_from(torch.tensor([10.0, -3.0, 30.0]))[2] == pytest.approx(0.75, abs=1e-5)
