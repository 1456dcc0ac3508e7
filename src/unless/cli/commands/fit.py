r"""`unless fit`: weights for a structure, so that it can be asked, sampled and scored.

Weights are found by penalised pseudo-likelihood, or by likelihood where exact inference is cheap.
STRUCTURE is what `unless learn` saved, or a model whose weights are to be found anew: .unless, .mn, .uai,
.bif, .json or .graphml. The table is read with its levels, and columns it does not know are left out; a
.data file of codes, as Libra writes them, is read by position where STRUCTURE is an .mn file or a schema
lies beside the table. Rows with missing values are used for what they show, by EM; --missing and
--incomplete do something else with them. OUT ends in .unless, .mn, .uai, .bif or .json, and is replaced
only when all went well.

\b
Examples:
  unless fit learned.unless table.csv -o fitted.unless
  unless fit learned.unless table.csv -o fitted.mn --sd 0.5 --l1 2
  unless fit network.mn train.data -o fitted.uai --json
  unless fit learned.unless table.csv -o fitted.unless --validate --validation 0.2

\b
The JSON document, keys sorted:
  format, version   "unless-fit", 1
  model             the file that was written
  n_variables, n_features, n_nonzero   the size of the model, and how
                    many of its weights are not zero
  n_rows            how many rows it was fitted to
  incomplete        null, or how rows with missing values were used:
                    n_complete, n_incomplete, n_rounds of EM, n_drawn,
                    the different rows completed by draws, and change,
                    what the last round changed
  prior             sd and l1; an sd of null means none
  candidates        null, or the priors that were tried: sd, l1 and
                    per_row, the score of rows they had not seen
  converged, message   whether the optimum was reached, in words
  stopped_by        "tolerance", "gain", "max_iterations" or "rounding"
  n_iterations, n_evaluations   what it took
  measure           "pseudo_log_likelihood" or "log_likelihood"
  objective         minus the measure, penalised and summed over rows
  gradient_norm, tolerance   how flat it is there, and had to be
  per_row           the measure without the prior, per row
"""

import math
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from unless.cli.files import check_model_output, found_files, open_record, read_like, with_database
from unless.cli.options import Written, jobs_option, make_command, matching_options, quiet_option, seed_option
from unless.cli.output import MEASURES, busy, note, number, say, say_json, say_notes
from unless.data.showing import count, visible
from unless.errors import SettingError, TooLarge
from unless.formats import FORMATS, WITHOUT_WEIGHTS

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.inference.model import LogLinearModel
    from unless.structures.graph import FeatureSet
    from unless.structures.structure import Indicators, Structure
    from unless.weights.priors import Prior


def _deviation(text: str) -> float:
    sd = float(text)
    if not sd > 0:
        raise ValueError(
            f"{text!r} is no standard deviation; give a number above 0, or inf for no such prior."
        )
    return sd


def _cost(text: str) -> float:
    l1 = float(text)
    if not 0 <= l1 < math.inf:
        raise ValueError(f"{text!r} is no cost of a unit of weight; give 0 or more.")
    return l1


def _tolerance(text: str) -> float:
    tolerance = float(text)
    if not 0 < tolerance < math.inf:
        raise ValueError(f"{text!r} is no tolerance; give a number above 0, such as 1e-6.")
    return tolerance


def _judge(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@make_command("fit", "Fit weights to a structure, so that it can be asked, sampled and scored.", __doc__)
@click.argument("structure", type=click.Path())
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path())
@click.option(
    "-o", "--output", metavar="OUT", required=True, type=click.Path(), help="Where to save the model."
)
@click.option(
    "--sd",
    type=Written("NUMBER", _deviation),
    help="Weights are believed to be normal with this standard deviation; inf for no such belief (1).",
)
@click.option("--l1", type=Written("NUMBER", _cost), help="What a unit of weight costs; makes many zero (0).")
@click.option("--no-prior", is_flag=True, help="Believe nothing; refused where weights would be infinite.")
@click.option(
    "--validate", is_flag=True, help="Try priors from strong to weak, and take the best for unseen rows."
)
@click.option(
    "--validation",
    type=Written("FILE|SHARE|FOLDS", _judge),
    help="With --validate: a table to judge by, the share of rows to set aside, or the number of folds (5).",
)
@seed_option
@click.option(
    "--objective",
    type=click.Choice(["pseudo", "likelihood"]),
    default="pseudo",
    help="What weights maximise; likelihood uses rows better, and is refused where it is not cheap (pseudo).",
)
@click.option(
    "--tolerance",
    type=Written("NUMBER", _tolerance),
    help="Go on until no component of the gradient exceeds this; by default (1e-6), weights of thousands of "
    "features stop where little is left to gain.",
)
@click.option(
    "--features",
    "kind",
    type=click.Choice(["cliques", "pairs", "subcliques"]),
    help="Which indicators of the graphs get a weight (cliques).",
)
@matching_options
@click.option(
    "--incomplete",
    type=click.Choice(["em", "drop"]),
    default="em",
    help="Use rows with missing values for what they show, or drop them (em).",
)
@jobs_option
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print how it went as JSON.")
def command(
    structure: str,
    files: tuple[str, ...],
    output: str,
    kind: "Indicators | None",
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Fit weights to STRUCTURE by a table, in one FILE or several with the same columns, and save a model.

    STRUCTURE or FILE may be a pipe, or - for standard input.
    """
    from unless.formats.catalogue import write_model

    files = with_database(files, options, required=True)
    prior = _prior(options)
    if options["incomplete"] == "drop" and options["missing"] is None:
        options["missing"] = "drop"
    endings = [ending for ending in FORMATS if ending not in WITHOUT_WEIGHTS]
    check_model_output(output, found_files(files), structure, endings)
    opened = open_record(structure)
    features = _features(opened.structure, kind)
    with busy(f"Reading {', '.join(files)} ...", quiet=quiet):
        data = read_like(opened.domain, files, options, structure, quiet=quiet, holes=True)
    if not quiet:
        say_notes(data)
    if isinstance(options["validation"], str):
        judge = [options["validation"]]
        options["validation"] = read_like(
            opened.domain, judge, {**options, "sql": None}, structure, quiet=quiet, holes=True
        )
    net = _fit(features, data, prior, options, quiet)
    document = _document(net, data)
    write_model(net, output)
    if as_json:
        say_json({"format": "unless-fit", "version": 1, "model": output, **document})
    elif not quiet:
        _say_fit(net, document)
        note(f"\nSaved. Ask it with: unless query {visible(quote(output))} {visible(quote(data.names[0]))}")


def _features(structure: "Structure", kind: "Indicators | None") -> "FeatureSet":
    """Return the features of a structure; only a graph for each context leaves a choice of `kind`."""
    suits = ("contexts", "graph") if kind == "cliques" else ("contexts",)
    if kind and structure.kind not in suits:
        raise SettingError(
            f"--features {kind} is for a structure with a graph for each context, as --learner CSGS learns."
        )
    return structure.indicators(kind or "cliques")


def _prior(options: dict[str, Any]) -> "Prior | str":
    from unless.weights.priors import Prior

    given = {name: options[name] for name in ("sd", "l1") if options[name] is not None}
    if options["validation"] is not None and not options["validate"]:
        raise click.UsageError("--validation is only for --validate; one prior needs no judge")
    if options["validate"]:
        for name in (*given, *(["no-prior"] if options["no_prior"] else [])):
            raise click.UsageError(f"--validate and --{name} exclude each other")
        return "validate"
    if options["no_prior"]:
        if given:
            raise click.UsageError(f"--no-prior and --{next(iter(given))} exclude each other")
        return Prior()
    return Prior(**{"sd": 1.0, **given})


def _fit(
    features: "FeatureSet", data: "Dataset", prior: "Prior | str", options: dict[str, Any], quiet: bool
) -> "LogLinearModel":
    from unless.weights.fit import fit_weights

    names = ("n_jobs", "max_memory", "objective", "tolerance", "validation", "incomplete")
    how = {name: options[name] for name in names}
    how |= {"random_state": options["seed"], "show_progress": False if quiet else None}
    try:
        return fit_weights(features, data, prior=prior, **how)
    except (SettingError, TooLarge) as error:
        # Ways out have other names here.
        said = str(error).replace("; give a prior such as Gaussian(1.0).", "; leave out --no-prior.")
        said = said.replace("use objective='pseudo'", "leave out --objective likelihood")
        said = said.replace("incomplete='drop'", "--incomplete drop")
        raise type(error)(said.replace("validation=", "--validation ")) from None


def _document(net: "LogLinearModel", data: "Dataset") -> dict[str, Any]:
    import numpy as np

    report = net.fit_report
    penalty = report.prior.precision / 2 * (net.weights**2).sum() + report.prior.l1 * abs(net.weights).sum()
    candidates = [{**_prior_document(one.prior), "per_row": number(one.score)} for one in report.candidates]
    n_rows = data.n_rows + (report.completed.n_incomplete if report.completed else 0)
    return {
        "n_variables": len(net.domain),
        "n_features": len(net.features),
        "n_nonzero": int(np.count_nonzero(net.weights)),
        "n_rows": n_rows,
        "incomplete": asdict(report.completed) if report.completed else None,
        "prior": _prior_document(report.prior),
        "candidates": candidates or None,
        "measure": report.measure,
        "per_row": number((penalty - report.objective) / n_rows),
        "converged": bool(report.converged),
        "message": report.message,
        "stopped_by": report.stopped_by,
        "n_iterations": report.n_iterations,
        "n_evaluations": report.n_evaluations,
        "objective": number(report.objective),
        "gradient_norm": number(report.gradient_norm),
        "tolerance": number(report.tolerance),
    }


def _prior_document(prior: "Prior") -> dict[str, float | None]:
    return {"sd": number(prior.sd), "l1": number(prior.l1)}


def _say_fit(net: "LogLinearModel", document: dict[str, Any]) -> None:
    from unless.weights.priors import Prior

    prior = net.fit_report.prior
    say(
        f"Fitted {count(document['n_features'], 'weight')} to {count(document['n_rows'], 'row')} of "
        f"{count(document['n_variables'], 'column')}, {'no prior' if prior == Prior() else f'prior {prior}'}."
    )
    if net.fit_report.completed:
        say(f"They are {net.fit_report.completed}.")
    if document["candidates"]:
        say(f"It is the best of {len(document['candidates'])} priors for rows they had not seen.")
    if prior.l1:
        say(f"{count(document['n_nonzero'], 'weight')} are not zero.")
    steps = count(document["n_iterations"], "iteration")
    say(f"{'Converged' if document['converged'] else 'Not converged'} after {steps}.")
    say(f"Objective: {document['objective']:,.4f}")
    say(f"{MEASURES[document['measure']]} per row: {document['per_row']:.6f}")
    if document["stopped_by"] != "tolerance":
        note(document["message"])
