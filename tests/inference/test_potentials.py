import numpy as np
import pytest

import unless
from inference.models import domain_of, model_of
from twins.naive_objective import random_case
from unless.errors import SettingError, TooLarge, UnknownName

DOMAIN = unless.Domain((unless.Variable("A", ("0", "1")), unless.Variable("B", ("x", "y", "z"))))


def everything(domain):
    return np.array(list(np.ndindex(*domain.n_levels.tolist())), dtype=np.uint16)


@pytest.mark.parametrize("seed", range(5))
def test_a_model_and_its_tables_are_one_law(seed):
    features, _, rng = random_case(seed, [2, 3, 4, 2], 1, 20)
    net = unless.LogLinearModel(features, rng.normal(size=len(features)))
    tables = net.to_potentials()
    again = unless.LogLinearModel.from_potentials(net.domain, tables)
    rows = everything(net.domain)
    assert again.log_potentials(rows) == pytest.approx(net.log_potentials(rows), abs=1e-12)
    assert len({names for names, _ in tables}) == len(tables)


def test_axes_may_come_in_any_order_and_tables_of_one_scope_multiply():
    table = np.arange(1.0, 7.0).reshape(2, 3)
    net = unless.LogLinearModel.from_potentials(DOMAIN, [(("A", "B"), table), (("B", "A"), table.T)])
    assert net.log_potentials(everything(DOMAIN)) == pytest.approx(2 * np.log(table).ravel())
    assert len(net.features) == 5


def test_a_potential_of_zero_excludes():
    net = unless.LogLinearModel.from_potentials(DOMAIN, [(("A",), [0.0, 1.0])])
    assert net.weights.tolist() == [-np.inf]
    assert net.to_potentials()[0][1].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (("A",), [1.0, 2.0, 3.0]),
        (("A", "A"), np.ones((2, 2))),
        ((), 1.0),
        (("A",), [-1.0, 1.0]),
        (("A",), [np.inf, 1.0]),
    ],
)
def test_tables_that_are_none_are_refused(names, table):
    with pytest.raises(SettingError, match="The table over"):
        unless.LogLinearModel.from_potentials(DOMAIN, [(names, table)])


def test_unknown_names_are_refused():
    with pytest.raises(UnknownName, match="'C'"):
        unless.LogLinearModel.from_potentials(DOMAIN, [(("C",), [1.0])])


def test_scopes_too_wide_for_a_table_are_refused():
    domain = unless.Domain(tuple(unless.Variable(f"X{i}", ("0", "1")) for i in range(30)))
    feature = unless.Feature.of(dict.fromkeys(domain.names, "0"))
    net = unless.LogLinearModel(unless.FeatureSet(domain, [feature]), [1.0])
    with pytest.raises(TooLarge, match="1,073,741,824 cells"):
        net.to_potentials()


@pytest.mark.parametrize("weight", [800.0, -800.0, -np.inf, np.inf])
def test_tables_of_extreme_weights_are_numbers_and_come_back(weight):
    net = model_of(domain_of([2, 3]), [([(0, 0, True)], weight), ([(1, 0, True)], 0.5)])
    tables = net.to_potentials()
    assert all(np.isfinite(table).all() for _, table in tables)
    again = unless.LogLinearModel.from_potentials(net.domain, tables)
    possible = np.isfinite(net.log_potentials(everything(net.domain)))
    assert (np.isfinite(again.log_potentials(everything(net.domain))) == possible).all()
    assert again.query("A0").probabilities == pytest.approx(net.query("A0").probabilities, abs=1e-300)
    assert again.query("A1").probabilities == pytest.approx(net.query("A1").probabilities)


def test_what_is_said_of_one_level_has_no_axis():
    net = model_of(domain_of([2, 1]), [([(0, 0, True), (1, 0, True)], 0.5), ([(1, 0, True)], 0.2)])
    assert [(names, table.tolist()) for names, table in net.to_potentials()] == [
        (("A0",), [pytest.approx(np.exp(0.5)), 1.0])
    ]
