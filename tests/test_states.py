"""States as wholes: copied, and kept in one block of memory."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from melee.bandit import Bandit
from melee.explorers import Problem, parse
from melee.states import arrays_of, copy_state, in_one_block
from tests.tasks import absorb, graded

SPECS = [
    "linucb",
    "bagging:bags=3",
    "eg-epsilon-greedy",
    "melee:hidden=5",
    "melee:hidden=5:rescale=false",
    "bagging:bags=3:hidden=4",
]
PROBLEM = Problem(n_features=3, n_actions=4)


class Leaf(NamedTuple):
    words: Any
    number: float
    table: Any


class Tree(NamedTuple):
    first: Any
    flags: Any
    deep: Any
    name: str


def a_tree():
    """Arrays of many types and shapes, an empty one and a single number among them."""
    one = Leaf(np.arange(3, dtype=np.uint64) + 2**63, 0.5, np.arange(6.0).reshape(2, 3))
    other = Leaf(np.array([7], np.int64), -1.0, np.zeros((0, 4)))
    flags = np.array([True, False, True])
    return Tree(one, flags, Tree(other, np.array([1.5], np.float32), np.array(3.0), "deep"), "top")


def started(spec):
    return parse(spec).begin(PROBLEM)


@pytest.mark.parametrize("state", [a_tree(), *map(started, SPECS)], ids=["tree", *SPECS])
@pytest.mark.parametrize("make", [copy_state, lambda state: in_one_block(state)[0]])
def test_a_copy_is_equal_and_of_the_same_kinds_and_shares_no_memory(state, make):
    copy = make(state)
    assert type(copy) is type(state)
    pairs = list(zip(arrays_of(copy), arrays_of(state), strict=True))
    assert pairs
    for mine, theirs in pairs:
        assert_array_equal(mine, theirs, strict=True)
        assert mine.flags.c_contiguous
        assert mine.flags.writeable
        assert not np.shares_memory(mine, theirs)
    kept = [theirs.copy() for _, theirs in pairs]
    for mine, _ in pairs:
        mine[...] = mine == 0
    for (_, theirs), before in zip(pairs, kept, strict=True):
        assert_array_equal(theirs, before, strict=True)


@pytest.mark.parametrize("make", [copy_state, lambda state: in_one_block(state)[0]])
def test_what_is_no_array_passes_through_at_any_depth(make):
    tree = make(a_tree())
    assert (tree.name, tree.deep.name) == ("top", "deep")
    assert (tree.first.number, tree.deep.first.number) == (0.5, -1.0)
    assert type(tree.deep.first) is Leaf


def test_arrays_are_found_depth_first():
    tree = a_tree()
    found = arrays_of(tree)
    inside = [tree.deep.first.words, tree.deep.first.table, tree.deep.flags, tree.deep.deep]
    expected = [tree.first.words, tree.first.table, tree.flags, *inside]
    assert [id(array) for array in found] == [id(array) for array in expected]


def test_arrays_lie_in_the_block_one_after_the_other_on_addresses_for_any_type():
    moved, block = in_one_block(a_tree())
    assert block.dtype == np.uint8
    starts = [array.ctypes.data - block.ctypes.data for array in arrays_of(moved) if array.size]
    ends = [
        array.ctypes.data - block.ctypes.data + array.nbytes
        for array in arrays_of(moved)
        if array.size
    ]
    assert all(array.ctypes.data % 64 == 0 for array in arrays_of(moved) if array.size)
    assert starts[0] == 0
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert ends[-1] <= block.nbytes
    assert block.nbytes == 64 * sum(array.size > 0 for array in arrays_of(moved))


def test_the_bytes_of_the_block_are_the_state():
    moved, block = in_one_block(a_tree())
    before = block.copy()
    for array in arrays_of(moved):
        if array.ndim:
            array[...] = 0
    moved.deep.deep[...] = -4.0
    assert not np.array_equal(block, before)
    block[:] = before
    for mine, original in zip(arrays_of(moved), arrays_of(a_tree()), strict=True):
        assert_array_equal(mine, original, strict=True)


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3).T, np.arange(8)[::2]])
@pytest.mark.parametrize("make", [copy_state, in_one_block])
def test_an_array_in_another_order_is_refused(make, array):
    with pytest.raises(ValueError, match="must be contiguous"):
        make(Leaf(np.arange(3), 0.0, Leaf(array, 0.0, np.zeros(2))))


def test_an_array_that_is_part_of_a_larger_one_stays_so():
    whole = np.arange(12.0).reshape(4, 3)
    rows, entry = whole[1:3], whole[2, 1:2]  # the second is part of both
    moved, block = in_one_block(Tree(entry, rows, Leaf(whole, 0.0, whole.reshape(2, 6)), "top"))
    for mine, theirs in zip(
        arrays_of(moved), (entry, rows, whole, whole.reshape(2, 6)), strict=True
    ):
        assert_array_equal(mine, theirs, strict=True)
        assert not np.shares_memory(mine, theirs)
    before = block.copy()
    moved.deep.words[2, 1] = -1.0
    assert (moved.first[0], moved.flags[1, 1], moved.deep.table[1, 1]) == (-1.0, -1.0, -1.0)
    moved.flags[0] = 5.0
    assert_array_equal(moved.deep.words[1], [5.0, 5.0, 5.0])
    block[:] = before
    assert_array_equal(moved.deep.words, whole)
    assert_array_equal(whole, np.arange(12.0).reshape(4, 3))


@pytest.mark.parametrize("spec", SPECS)
def test_one_block_saves_and_restores_any_explorer(spec, monkeypatch):
    if spec != "linucb":  # the states of the others are compiled for no other test
        monkeypatch.setenv("MELEE_COMPILE", "never")
    task = graded(60, n_actions=4, n_features=3, seed=2)
    contexts = task.contexts / np.abs(task.contexts).max(axis=0)
    bandit = Bandit(spec, n_features=3, n_actions=4, seed=1)
    bandit._state, block = in_one_block(bandit._state)

    def play(rows):
        decisions = []
        for row in rows:
            action, p = bandit.act(contexts[row])
            decisions.append((action, p, *bandit.pmf(contexts[row])))
            absorb(bandit, contexts[row], action, task.rewards[row], p)
        return decisions

    play(range(20))
    saved, n_learned = block.copy(), bandit.n_learned_
    first = play(range(20, 60))
    assert not np.array_equal(block, saved)
    block[:], bandit.n_learned_ = saved, n_learned
    assert play(range(20, 60)) == first
