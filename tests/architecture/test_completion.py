"""Tab completion shows what is documented, and nothing that only the library itself uses."""

import types
from typing import Any

import pytest

import unless


@pytest.fixture(scope="module")
def things() -> dict[str, Any]:
    data = unless.datasets.load_titanic()
    est = unless.GGS().fit(data)
    return {"est": est, "est.statements_": est.statements_, "net": est.network(data), "data": data}


SHOWN = {
    "est": """
        alpha ask claims_ data_ fdr feature_names_in_ fit forbidden_edges forbidden_gates gates
        get_params max_blanket max_distinct_tests_ max_gate max_memory n_distinct_tests_ n_features_in_ n_jobs
        n_tests_
        negligible network notes_ report required_edges resume score set_params show_progress statements_
        structure_ target_ work_dir""",
    "est.statements_": """
        about about_column aimed count counts direction domain findings given index lines note of_kind
        settings statements target to_dict to_frame""",
    "net": """
        conditional_marginal_log_likelihood domain features fit_report from_potentials impute
        log_likelihood log_likelihood_codes log_partition log_potentials map_query marginals predict
        predict_proba probability pseudo_log_likelihood query sample sample_codes score to_potentials
        weights""",
    "data": """
        constant_names counts design detail domain from_codes index n_distinct n_rows n_variables names notes
        plan rows select self_weighting weights""",
}


def public(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


@pytest.mark.parametrize("name", SHOWN)
def test_these_names_are_shown(things: dict[str, Any], name: str) -> None:
    assert public(things[name]) == sorted(SHOWN[name].split())


def test_the_package_shows_its_public_names_and_no_module_of_its_own() -> None:
    assert public(unless) == sorted(unless.__all__)
    modules = [name for name in public(unless) if isinstance(getattr(unless, name), types.ModuleType)]
    assert modules == ["datasets", "errors"]
    for module in (unless.datasets, unless.errors):
        assert not [name for name in public(module) if isinstance(getattr(module, name), types.ModuleType)]
    assert public(unless.datasets) == sorted(unless.datasets.__all__)
    assert all(
        issubclass(getattr(unless.errors, name), (Exception, Warning)) for name in public(unless.errors)
    )


def test_what_is_shown_is_documented(things: dict[str, Any]) -> None:
    for thing in things.values():
        for name in public(type(thing)):
            value = getattr(type(thing), name)
            if callable(value) or isinstance(value, property):
                assert value.__doc__, f"{type(thing).__name__}.{name}"
