"""Interleaved timing: on a shared machine only ratios from one run mean anything."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True)
class Sample:
    """What one call cost, in seconds."""

    cpu: float
    wall: float


Measured = Callable[[], Sample]
Result = TypeVar("Result")


def timed(call: Callable[[], Result]) -> tuple[Result, Sample]:
    """Call once; return what it gave and what it cost."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return result, Sample(time.process_time() - cpu, time.perf_counter() - wall)


def measured(call: Callable[[], object], loops: int = 1) -> Measured:
    """Make a call measure itself, as the mean of `loops` calls in a row."""

    def sample() -> Sample:
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(loops):
            call()
        return Sample((time.process_time() - cpu) / loops, (time.perf_counter() - wall) / loops)

    return sample


def loops_for(call: Callable[[], object], seconds: float) -> int:
    """Return how many calls fill about this time, so that the clock's grain does not matter."""
    # The first call compiles: it says nothing about the others.
    call()
    loops = 1
    while True:
        start = time.perf_counter()
        for _ in range(loops):
            call()
        taken = time.perf_counter() - start
        if taken >= seconds / 2:
            return max(1, round(loops * seconds / taken))
        loops *= 2


def interleave(ways: Mapping[str, Measured], repeats: int, warm: bool = True) -> dict[str, list[Sample]]:
    """Measure all ways in turn (ABCABC...), after one turn that warms them and is thrown away."""
    samples: dict[str, list[Sample]] = {name: [] for name in ways}
    for turn in range(-1 if warm else 0, repeats):
        for name, way in ways.items():
            sample = way()
            if turn >= 0:
                samples[name].append(sample)
    return samples


def median(samples: list[Sample], clock: str = "cpu") -> float:
    """Return the median time."""
    return statistics.median(getattr(sample, clock) for sample in samples)


def spread(values: list[float]) -> str:
    """Write the range of the values."""
    return f"{min(values):.3g} to {max(values):.3g}"


def times(samples: list[Sample], clock: str = "cpu", unit: float = 1.0) -> list[float]:
    """Return the times in a unit of so many seconds."""
    return [getattr(sample, clock) / unit for sample in samples]


def ratios(ours: list[Sample], theirs: list[Sample], clock: str = "cpu") -> list[float]:
    """Return the ratio of times in each turn."""
    return [a / b for a, b in zip(times(ours, clock), times(theirs, clock), strict=True)]
