"""How weights were found, kept beside them."""

import math
from dataclasses import asdict

from msgspec import structs

from unless.formats.wire import WireCandidate, WireCompleted, WireFit
from unless.weights.priors import parse_prior
from unless.weights.report import Candidate, Completed, FitReport


def wire_report(report: FitReport | None) -> WireFit | None:
    """Write a report; one with numbers that JSON has no word for is left out."""
    if report is None:
        return None
    numbers = [report.objective, report.gradient_norm, report.tolerance]
    if not all(map(math.isfinite, numbers + [tried.score for tried in report.candidates])):
        return None
    return WireFit(
        repr(report.prior),
        report.measure,
        report.stopped_by,
        report.n_iterations,
        report.n_evaluations,
        report.objective,
        report.gradient_norm,
        report.tolerance,
        [WireCandidate(repr(tried.prior), tried.score) for tried in report.candidates],
        None if report.completed is None else WireCompleted(**asdict(report.completed)),
    )


def read_report(wire: WireFit | None) -> FitReport | None:
    """Read a report."""
    if wire is None:
        return None
    return FitReport(
        parse_prior(wire.prior),
        wire.measure,
        wire.stopped_by,
        wire.n_iterations,
        wire.n_evaluations,
        wire.objective,
        wire.gradient_norm,
        wire.tolerance,
        tuple(Candidate(parse_prior(tried.prior), tried.score) for tried in wire.candidates),
        None if wire.completed is None else Completed(**structs.asdict(wire.completed)),
    )
