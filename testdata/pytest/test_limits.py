"""Limits that hold, and limits that do not."""
import asyncio

import pytest
from conftest import MIB

import memtrace

kept = []


@pytest.mark.expect(own=4 * MIB)
@pytest.mark.limit_gpu_memory("4 MB")
def test_within(weights, make):
    make(3)
    make(4)


@pytest.mark.expect(own=4 * MIB)
@pytest.mark.limit_gpu_memory("3.5 MB")
def test_over(weights, make):
    make(4)


@pytest.mark.expect(own=MIB)
@pytest.mark.limit_gpu_memory("6.5 MiB", total=True)
def test_over_in_total(weights, make):
    make(1)


@pytest.mark.expect(own=2 * MIB)
@pytest.mark.xfail(strict=True)
@pytest.mark.limit_gpu_memory(1 << 20)
def test_expected_to_be_over(make):
    make(2)


@pytest.mark.xfail
def test_expected_to_fail(make):
    held = make(3)
    assert held is None


@pytest.mark.skip(reason="not today")
def test_skipped(make):
    make(8)


def test_skips_itself(make):
    make(1)
    pytest.skip("half way")


@pytest.mark.parametrize("mib", [1, 2.5])
@pytest.mark.limit_gpu_memory("2 MB")
def test_sizes(make, mib):
    make(mib)


@pytest.mark.expect(own=MIB, left=MIB)
@pytest.mark.limit_gpu_leaks()
def test_leaks(make):
    kept.append(make(1))


@pytest.mark.expect(own=3 * MIB, left=3 * MIB)
@pytest.mark.limit_gpu_leaks("1 MB", allow="tag:cache")
def test_leaves_what_it_may(make):
    with memtrace.tag("cache"):
        kept.append(make(2))
    kept.append(make(1))


@pytest.mark.expect(own=2 * MIB, left=2 * MIB)
@pytest.mark.limit_gpu_leaks(filter_fn=lambda holding: "test_limits.py" not in holding.owner.site)
def test_filter(make):
    kept.append(make(2))


@pytest.mark.expect(own=MIB)
@pytest.mark.limit_gpu_leaks()
def test_cycle(make):
    cycle = [make(1)]
    cycle.append(cycle)


@pytest.mark.expect(own=3 * MIB)
@pytest.mark.asyncio
@pytest.mark.limit_gpu_memory("3 MB")
async def test_asynchronous(make):
    held = [make(1)]
    await asyncio.sleep(0)

    async def more():
        held.append(make(1))
        await asyncio.sleep(0)

    await asyncio.gather(more(), more())


@pytest.mark.expect(own=2 * MIB)
@pytest.mark.asyncio
@pytest.mark.limit_gpu_memory("1 MB")
async def test_asynchronous_over(make):
    make(2)
    await asyncio.sleep(0)


@pytest.mark.expect(own=0)
def test_nothing():
    pass
