"""Clocks that are ten minutes fast and slow: orders, leases, keys that end, deletion dates, and what is written down."""

import shutil

import pytest

from bench.clocks import skewed

pytestmark = pytest.mark.slow


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("cc") is None and shutil.which("gcc") is None, reason="shifts clocks by a library in C"
)
@pytest.mark.parametrize("seconds", [600, -600])
def test_with_skewed_clocks_all_times_that_matter_hold(tmp_path, seconds):
    tmp_path.chmod(0o755)
    assert skewed(tmp_path / "service", seconds) == []
