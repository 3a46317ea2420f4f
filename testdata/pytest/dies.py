"""A test that ends its process. pytest collects this file only where it is named."""
import os

import pytest

MIB = 1 << 20


@pytest.mark.expect(own=3 * MIB)
def test_before(make):
    held = make(3)
    del held


def test_dies(make, weights, batch):
    held = make(5)
    os._exit(3)
    del held


@pytest.mark.expect(own=2 * MIB)
def test_after(make):
    held = make(2)
    del held
