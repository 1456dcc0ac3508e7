"""A model meets a file of counts: what counted the rows when it learned does so again."""

import numpy as np

import unless
from unless.datasets import load_ucb_admissions


def written(folder, name="Freq"):
    data = load_ucb_admissions()
    lines = [
        ",".join([*data.domain.decode(row).values(), str(count)])
        for row, count in zip(data.rows, data.counts, strict=True)
    ]
    path = folder / "counts.csv"
    path.write_text("\n".join([",".join([*data.names, name]), *lines]))
    return path


def test_a_column_of_counts_is_found_where_a_model_reads_a_table(tmp_path):
    path = written(tmp_path)
    est = unless.learn(path)
    whole = est.network(unless.read(path))
    for net in (est.network(path), est.network(str(path))):
        np.testing.assert_array_equal(net.weights, whole.weights)
    assert unless.explain(est.structure_, path).findings[0].sentence == est.statements_.findings[0].sentence


def test_a_column_of_another_name_counts_nothing(tmp_path):
    path = written(tmp_path, "length")
    est = unless.learn(load_ucb_admissions())
    assert est.network(path).fit_report != est.network(load_ucb_admissions()).fit_report
