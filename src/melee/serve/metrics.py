"""Counters and latencies in the text format of Prometheus."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Seconds that a request took, at most, for each bucket."""


class Requests:
    """Requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}
        self.seconds: dict[str, float] = {}
        self.buckets: dict[str, list[int]] = {}

    def note(self, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        key = (route, status)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds
        if route not in self.buckets:
            self.buckets[route] = [0] * (len(BOUNDS) + 1)
        self.buckets[route][bisect_left(BOUNDS, seconds)] += 1

    def joined(self, *others: "Requests") -> "Requests":
        """These and those of other processes."""
        all_ = Requests()
        for requests in (self, *others):
            for key, n in requests.counts.items():
                all_.counts[key] = all_.counts.get(key, 0) + n
            for route, seconds in requests.seconds.items():
                all_.seconds[route] = all_.seconds.get(route, 0.0) + seconds
                so_far = all_.buckets.get(route, [0] * (len(BOUNDS) + 1))
                both = zip(so_far, requests.buckets[route], strict=True)
                all_.buckets[route] = [a + b for a, b in both]
        return all_

    def to_json(self) -> dict[str, Any]:
        """As another process can be told them."""
        counts = [[*key, n] for key, n in self.counts.items()]
        return {"counts": counts, "seconds": self.seconds, "buckets": self.buckets}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> "Requests":
        """What another process has told."""
        made = cls()
        made.counts = {(route, status): n for route, status, n in given["counts"]}
        made.seconds, made.buckets = given["seconds"], given["buckets"]
        return made

    def quantile(self, route: str, share: float, least: int = 1_000) -> float | None:
        """The least bound that this share of a route's requests took no longer than.

        None where there were fewer requests than `least`: the first ones are slow.
        """
        counts = self.buckets.get(route)
        if counts is None or sum(counts) < least:
            return None
        wanted, so_far = share * sum(counts), 0
        for bound, n in zip((*BOUNDS, float("inf")), counts, strict=True):
            so_far += n
            if so_far >= wanted:
                return bound
        return None

    def lines(self) -> Iterator[str]:
        """As Prometheus reads them."""
        name = "melee_http_requests_total"
        rows = [({"route": r, "status": s}, n) for (r, s), n in sorted(self.counts.items())]
        yield from family(name, "counter", "Requests that were answered.", rows)
        name = "melee_http_request_duration_seconds"
        yield f"# HELP {name} Seconds from a request to its answer."
        yield f"# TYPE {name} histogram"
        for route, counts in sorted(self.buckets.items()):
            so_far = 0
            for bound, n in zip((*map(repr, BOUNDS), "+Inf"), counts, strict=True):
                so_far += n
                yield f"{name}_bucket{_labels({'route': route, 'le': bound})} {so_far}"
            yield f"{name}_sum{_labels({'route': route})} {self.seconds[route]!r}"
            yield f"{name}_count{_labels({'route': route})} {so_far}"


def family(
    name: str, kind: str, about: str, rows: Iterable[tuple[dict[str, Any], float]]
) -> Iterator[str]:
    """The lines of one metric."""
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in rows:
        yield f"{name}{_labels(labels)} {value!r}"


def _labels(labels: dict[str, Any]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: Any) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
