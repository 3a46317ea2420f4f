"""Fixtures of every scope: what those of wider scopes allocate is not the test's."""
import unittest

import pytest
import torch
from conftest import MIB, tensor

import memtrace.testing


@pytest.fixture(scope="module")
def model():
    return torch.nn.Linear(1024, 1024, bias=False).cuda()


@pytest.fixture(scope="module")
def late():
    return tensor(3)


@pytest.fixture(scope="module", params=[1, 2])
def sized(request):
    return tensor(request.param)


@pytest.fixture
def broken(make):
    make(1)
    raise RuntimeError("a fixture that fails")


@pytest.mark.expect(own=MIB)
def test_session_first(weights, make):
    make(1)


@pytest.mark.expect(own=MIB)
def test_session_again(weights, make):
    make(1)


@pytest.mark.expect(own=5 * MIB)
def test_function_fixture(batch, make):
    kept = make(2), make(1)
    del kept


@pytest.mark.expect(own=MIB)
def test_asked_for_late(request, make):
    kept = make(1)
    request.getfixturevalue("late")
    del kept


@pytest.mark.expect(own=MIB)
def test_each_size(sized, make):
    make(1)


def test_fixture_fails(broken):
    raise AssertionError("not reached")


class TestClass:
    @pytest.fixture(scope="class")
    def cache(self):
        return [tensor(4)]

    @pytest.mark.expect(own=0)
    def test_class_first(self, cache):
        assert len(cache) == 1

    @pytest.mark.expect(own=2 * MIB, left=2 * MIB)
    def test_grows(self, cache, make):
        cache.append(make(2))

    @pytest.mark.expect(own=0)
    def test_shrinks(self, cache):
        cache.clear()


@pytest.mark.expect(left=4 * MIB)
@pytest.mark.limit_gpu_leaks("3 MB")
def test_gradients_stay(model):
    (model.weight * 1).sum().backward(torch.ones((), device="cuda"))


def test_training_step(model):
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


class TestUnit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tensor(1)

    @pytest.mark.expect(own=2 * MIB)
    def test_within(self):
        with memtrace.testing.limit_gpu_memory("2 MB"):
            tensor(2)

    @pytest.mark.expect(own=2 * MIB)
    @memtrace.testing.limit_gpu_memory("1 MB")
    def test_over(self):
        tensor(2)
