"""Randomness: one seed, named streams, and a generator that any round can be replayed from.

`generator(seed, "order")` gives NumPy's generator for work outside the loop. Inside the loop a
stream is two words: its key and its position. Each round starts at a position computed from
the key, the round and the phase (acting or learning), so a round's randomness depends neither
on how much the rounds before it drew nor on whether learning comes at once or an hour later;
two runs that share a key see the same random numbers round by round.

The words are drawn by SplitMix64 (Steele, Lea and Flood, 2014).
"""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from melee.arrays import Words
from melee.compiled import kernel
from melee.errors import whole_number

ACT, LEARN = 0, 1
"""The two phases of a round, each with random numbers of its own."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_U11, _U27, _U30, _U31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


def check_seed(seed: int) -> int:
    """The seed as a Python int, or a clear refusal."""
    return whole_number("seed", seed, 0)


def _sequence(seed: int, names: tuple[str | int, ...]) -> np.random.SeedSequence:
    ids = [zlib.crc32(n.encode()) if isinstance(n, str) else n for n in names]
    return np.random.SeedSequence(check_seed(seed), spawn_key=ids)


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """NumPy's generator for the stream of that name.

    >>> generator(0, "order").random() == generator(0, "order").random()
    True
    """
    return np.random.default_rng(_sequence(seed, names))


def stream(seed: int, *names: str | int) -> Words:
    """The two words (key, position) of a stream for kernels.

    >>> stream(0, "exploration").shape
    (2,)
    """
    return _sequence(seed, names).generate_state(2, np.uint64).astype(np.uint64)


@kernel
def mix(word: Any) -> Any:
    """Scatter the bits of a word (SplitMix64's finalizer)."""
    word = (word ^ (word >> _U30)) * _MIX_1
    word = (word ^ (word >> _U27)) * _MIX_2
    return word ^ (word >> _U31)


@kernel
def start_round(rng: Words, t: int, phase: int) -> None:
    """Move the stream to the start of round t's acting or learning phase."""
    rng[1] = mix(rng[0] + mix(np.uint64(2 * t + phase) + _GOLDEN))


@kernel
def uniform(rng: Words) -> float:
    """The next number in [0, 1)."""
    rng[1] += _GOLDEN
    return float(mix(rng[1]) >> _U11) * (1.0 / 9007199254740992.0)


def uniforms(rng: Words, n: int) -> npt.NDArray[np.float64]:
    """The next n of them, outside of kernels."""
    words = rng[1] + _GOLDEN * np.arange(1, n + 1, dtype=np.uint64)
    rng[1] = words[-1]
    return np.asarray((mix(words) >> _U11).astype(np.float64) * (1.0 / 9007199254740992.0))


@kernel
def poisson_1(rng: Words) -> int:
    """The next draw from a Poisson distribution of mean 1, by inverting its cumulative sum."""
    u = uniform(rng)
    k = 0
    mass = 0.36787944117144233  # exp(-1)
    while u >= mass and k < 20:
        u -= mass
        k += 1
        mass /= k
    return k
