from __future__ import annotations

import math

import pytest

from workers.mechanism.clusters import dbscan_groups, one_group

IS_BIAS = (False, True, False, True, False)


def test_similar_thresholds_share_a_group_and_biases_are_one() -> None:
    clip = dbscan_groups((1.0, 0.2, 1.2, 9.0, 8.0), is_bias=IS_BIAS, eps=0.5, min_samples=1)
    assert clip.groups == ((0, 2), (4,), (1, 3))
    assert clip.clip_norms == pytest.approx((math.hypot(1.0, 1.2), 8.0, math.hypot(0.2, 9.0)))


def test_what_dbscan_calls_noise_is_a_group_of_its_own() -> None:
    clip = dbscan_groups((1.0, 1.0, 10.0, 1.0, 100.0), is_bias=IS_BIAS, eps=0.5, min_samples=2)
    assert clip.groups == ((0,), (2,), (4,), (1, 3))


@pytest.mark.parametrize("thresholds", [(1.0,) * 5, (1e-3, 1e2, 1e-3, 1e2, 1e2)])
def test_groups_partition_the_tensors(thresholds: tuple[float, ...]) -> None:
    clip = dbscan_groups(thresholds, is_bias=IS_BIAS, eps=0.5, min_samples=1)
    assert sorted(tensor for group in clip.groups for tensor in group) == [0, 1, 2, 3, 4]
    assert math.hypot(*clip.clip_norms) == pytest.approx(math.hypot(*thresholds))


def test_flat_clipping() -> None:
    clip = one_group((3.0, 4.0))
    assert clip.groups == ((0, 1),)
    assert clip.clip_norms == (5.0,)
