"""Chow-Liu: the tree of pairs that makes a table most likely (Chow and Liu, 1968)."""

from collections.abc import Iterable, Sequence

import numpy as np

from unless.counting.strata import bytes_to_count, bytes_to_join
from unless.data.dataset import Dataset
from unless.errors import SettingError
from unless.independence.oracle import IndependenceTester
from unless.learners.base import Learner, Run
from unless.learners.settings import EdgeNames, between, edge_limits, setting
from unless.structures.graph import Graph


class ChowLiu(Learner):
    """Learn one tree: of all trees over the columns, that under which the rows are most likely.

    It is the spanning tree whose edges have the largest sum of mutual information, found exactly (Kruskal).
    Edges that a test does not confirm are left out, so that independent columns stay apart.

    Parameters
    ----------
    alpha
        An edge is left out where the likelihood-ratio test of its two ends has p >= alpha, p multiplied by
        the number of pairs (Bonferroni).
    required_edges, forbidden_edges
        Pairs of names that are in the graph, or not.

    Examples
    --------
    >>> import unless
    >>> est = unless.ChowLiu().fit(unless.datasets.load_ucb_admissions())
    >>> sorted(est.structure_)
    [('Admit', 'Dept'), ('Dept', 'Gender')]
    """

    kept_structure = Graph
    _work = "A tree over {n:,} columns and {m:,} distinct rows"
    saves_answer = True

    alpha: float = setting(default=0.05, check=between(0, 1), kw_only=False)
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)

    def _bytes_needed(self, data: Dataset, run: Run) -> int:  # noqa: ARG002
        return bytes_to_join(data, 1) + bytes_to_count(data, 1) + 200 * data.n_variables**2

    def _learn(self, data: Dataset, run: Run, *_: Dataset) -> None:
        # By name: the order of the columns decides nothing, not even between equal edges.
        table = data.select(sorted(data.names))
        names, n_pairs = table.names, table.n_variables * (table.n_variables - 1) // 2
        must, never = edge_limits(table.domain, self.required_edges, self.forbidden_edges)
        tester = IndependenceTester(table, test="likelihood_ratio")
        required = [(names[a], names[b]) for a, b in np.argwhere(np.triu(must))]
        ranked: list[tuple[float, str, str]] = []
        steps = run.steps(len(names))
        for at, a in enumerate(names):
            tested = tester.ask_all(a, others=names[at + 1 :])
            confirmed = (tested.p * n_pairs < self.alpha) & ~never[at, at + 1 :]
            # G is twice the mutual information times the number of rows: it ranks the pairs alike.
            found = zip(tested.others, tested.statistic.tolist(), confirmed, strict=True)
            ranked += [(-g, a, b) for b, g, is_confirmed in found if is_confirmed]
            steps.tick()
        forest = spanning_forest(names, [*required, *((a, b) for _, a, b in sorted(ranked))])
        if any(edge not in forest for edge in required):
            raise SettingError("required_edges= close a cycle, which no tree has; leave one of them out.")
        self.structure_ = Graph(data.domain, forest)
        self.n_tests_ = self.n_distinct_tests_ = n_pairs


def spanning_forest(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Take each edge in turn that joins two parts which no edge joins so far (Kruskal, 1956)."""
    part_of = {name: {name} for name in names}
    taken = []
    for a, b in edges:
        if part_of[a] is not part_of[b]:
            taken.append((a, b))
            part_of[a] |= part_of[b]
            for name in part_of[b]:
                part_of[name] = part_of[a]
    return taken
