"""How far sampled averages can be trusted: standard errors, effective sample sizes and R-hat of chains."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unless.data.showing import html_table

Floats = npt.NDArray[np.float64]
# Differences between probabilities that do not matter to anyone.
NEGLIGIBLE = 1e-6
# Chains agree below this, by the usual measure.
MOST_R_HAT = 1.05


@dataclass(frozen=True)
class Trace:
    """Sums of a quantity and of its square over batches of draws, (chains, batches, quantities)."""

    sums: Floats
    squares: Floats
    n_per_batch: int

    @property
    def n_draws(self) -> int:
        """The draws of all chains together."""
        return int(np.prod(self.sums.shape[:2])) * self.n_per_batch

    @property
    def means(self) -> Floats:
        """The mean of each batch."""
        return self.sums / self.n_per_batch


@dataclass(frozen=True)
class GibbsReport:
    """What the chains did: `r_hat` near 1 says that they agree, `effective_size` what the draws are worth.

    Both are the worst over the cells of the answer. Where chains were tempered, they are those of the coldest
    of `n_levels` levels, which replicas reached `n_arrivals` times from the hottest one.
    """

    n_chains: int
    n_draws: int
    burn_in: int
    r_hat: float
    effective_size: float
    n_levels: int = 1
    n_arrivals: int = 0

    @property
    def agrees(self) -> bool:
        """Whether the chains agree by the usual measure, R-hat below 1.05."""
        return self.r_hat < MOST_R_HAT

    def __str__(self) -> str:
        r_hat = f"{self.r_hat:.3f}" if self.r_hat < 100 else "over 100"
        said = "" if self.agrees else "; the chains disagree, so take more draws"
        if self.n_levels > 1:
            return (
                f"Gibbs sampling, tempered because plain chains stay in one mode or mix too slowly: "
                f"{self.n_chains} ensembles of {self.n_levels} levels and {self.n_draws:,} rounds, R-hat "
                f"{r_hat}, {self.n_arrivals:,} arrivals from the hottest level, {self.effective_size:,.0f} "
                f"effective draws{said}"
            )
        return (
            f"Gibbs sampling, {self.n_chains} chains of {self.n_draws:,} draws after {self.burn_in:,}: R-hat "
            f"{r_hat}, {self.effective_size:,.0f} effective draws{said}"
        )

    def _repr_html_(self) -> str:
        return html_table("Gibbs sampling", (), (), [str(self)])


@dataclass(frozen=True)
class BeliefReport:
    """How message passing ended: after how many iterations, and by how much a message last changed."""

    n_iterations: int
    change: float
    is_converged: bool
    is_tree: bool

    def __str__(self) -> str:
        if not self.is_converged:
            return (
                f"Belief propagation did not converge: after {self.n_iterations:,} iterations a message "
                f"still changes by {self.change:.1g}; try more damping or Gibbs sampling"
            )
        worth = "exact, as there are no loops" if self.is_tree else "approximate, as there are loops"
        return f"Belief propagation converged after {self.n_iterations:,} iterations: {worth}"

    def _repr_html_(self) -> str:
        return html_table("Belief propagation", (), (), [str(self)])


def standard_errors(trace: Trace) -> Floats:
    """Return the standard error of each quantity's mean over all chains.

    The batch means are a short series whose autocorrelations are added up as far as they are positive and
    fall (Geyer 1992); chains that disagree count as correlated (Vehtari et al. 2021, without ranks).
    """
    means = trace.means
    n_chains, n_batches, _ = means.shape
    spread = means - means.mean(axis=1, keepdims=True)
    covariances = _autocovariances(spread)
    within = covariances[0] * n_batches / (n_batches - 1)
    total = covariances[0] + (means.mean(axis=1).var(axis=0, ddof=1) if n_chains > 1 else 0.0)
    moving = total > 0
    correlations = np.zeros_like(covariances)
    correlations[:, moving] = 1 - (within - covariances)[:, moving] / total[moving]
    correlations[0] = 1.0
    time = _correlation_time(correlations)
    return np.asarray(np.sqrt(total * time / (n_chains * n_batches)))


def effective_sizes(trace: Trace, errors: Floats) -> Floats:
    """Return how many independent draws would give the same standard errors; all of them for a constant."""
    variances = trace.squares.sum(axis=(0, 1)) / trace.n_draws - trace.means.mean(axis=(0, 1)) ** 2
    sizes = np.full(len(errors), float(trace.n_draws))
    moving = errors > NEGLIGIBLE
    sizes[moving] = np.maximum(variances[moving], 0) / errors[moving] ** 2
    return sizes


def split_r_hats(trace: Trace) -> Floats:
    """Return, for each quantity, how much wider all half chains together spread than each by itself."""
    half = trace.sums.shape[1] // 2
    sums = np.concatenate([trace.sums[:, :half], trace.sums[:, -half:]]).sum(axis=1)
    squares = np.concatenate([trace.squares[:, :half], trace.squares[:, -half:]]).sum(axis=1)
    n_draws = half * trace.n_per_batch
    means = sums / n_draws
    within = np.maximum(squares / n_draws - means**2, 0).mean(axis=0) * n_draws / max(n_draws - 1, 1)
    between = means.var(axis=0, ddof=1)
    ratios = np.ones(len(within))
    # Chains agree on a quantity whose means differ by less than anyone asks.
    moving = between > NEGLIGIBLE**2
    with np.errstate(divide="ignore"):
        ratios[moving] = np.sqrt((n_draws - 1) / n_draws + between[moving] / within[moving])
    return ratios


def binomial_errors(means: Floats, n_visits: int) -> Floats:
    """Return the standard errors of shares of so many independent visits.

    One visit more of each kind is counted than there were: what none of n visits saw has the error 1 / n, and
    five errors are the mass that would have been missed once in 150 times.
    """
    shares = (means * n_visits + 1) / (n_visits + 2)
    return np.asarray(np.sqrt(shares * (1 - shares) / n_visits))


def report_on(
    trace: Trace, errors: Floats, burn_in: int, n_levels: int = 1, n_arrivals: int = 0
) -> GibbsReport:
    """Sum up a run of chains by its worst quantity."""
    n_chains, n_batches, n_cells = trace.sums.shape
    r_hat = float(split_r_hats(trace).max()) if n_cells else 1.0
    size = float(effective_sizes(trace, errors).min()) if n_cells else float(trace.n_draws)
    return GibbsReport(n_chains, n_batches * trace.n_per_batch, burn_in, r_hat, size, n_levels, n_arrivals)


def _autocovariances(spread: Floats) -> Floats:
    """Return the autocovariances of centred series, (lags, quantities), averaged over chains."""
    n_batches = spread.shape[1]
    frequencies = np.fft.rfft(spread, 2 * n_batches, axis=1)
    power = (frequencies * frequencies.conj()).real.mean(axis=0)
    return np.asarray(np.fft.irfft(power, 2 * n_batches, axis=0)[:n_batches] / n_batches)


def _correlation_time(correlations: Floats) -> Floats:
    n_pairs = len(correlations) // 2
    pairs = correlations[0 : 2 * n_pairs : 2] + correlations[1 : 2 * n_pairs : 2]
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    # Batches that undo each other would promise a precision that so short a series cannot show.
    return np.asarray(np.maximum(2 * falling.sum(axis=0) - 1, 0.5))
