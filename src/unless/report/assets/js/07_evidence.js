// The evidence of a statement: what was tested, and its shares as bars with intervals.

// What is said on the two sides of a gate, in the words of states.
const SIDES = {
  gated: ["holds", "absent"],
  differs: ["holds", "holds"],
  partly: ["holds", "not settled"],
  linked: ["holds"],
  associated: ["not settled"],
  open: ["not settled"],
  unlinked: ["absent"],
};

function badge(state) {
  return el("span", { class: `badge ${state.replaceAll(" ", "-")}` }, state);
}

function factList(rows) {
  return el(
    "dl",
    { class: "facts" },
    rows.flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)]),
  );
}

function confidenceText(value) {
  if (value >= 0.9995) return "over .999";
  return value.toFixed(value >= 0.995 ? 3 : 2).replace(/^0/, "");
}

function statementFacts(one) {
  const rows = [];
  if (one.confidence !== null) rows.push(["Confidence", confidenceText(one.confidence)]);
  if (one.kind === "determined") {
    rows.push(["Told by", seen(one.source)]);
    rows.push(["Rows that break it", `${whole(one.n_broken)} of ${whole(one.n_rows)}`]);
  } else {
    const none = one.gate ? "no column beside its gate" : "no other column";
    rows.push(["Given", one.given.map(seen).join(", ") || none]);
  }
  if (one.more_rows !== null) rows.push(["To settle it", `about ${count(one.more_rows, "more row")}`]);
  if (one.support !== null) rows.push(["Support", percent(one.support)]);
  return factList(rows);
}

// What is not finite is null in the data of the page.
function known(value, write) {
  return value === null ? "–" : write(value);
}

// On the far side of a gate p is of that side alone, and there is no q.
function sideFacts(side, at) {
  const statistic = known(side.statistic, (value) => value.toFixed(2));
  return factList([
    ["Rows", whole(side.n_rows)],
    [
      "Strength (Cramér's V)",
      `${known(side.cramers_v, decimal)}, at most ${known(side.cramers_v_limit, decimal)}`,
    ],
    ["Information", `${known(side.information, (bits) => bits.toFixed(4))} bits a row`],
    ["Test", `${side.method}, χ² = ${statistic}, ${count(side.df, "degree")} of freedom`],
    ...(side.design_effect ? [["Design effect", decimal(side.design_effect)]] : []),
    at
      ? ["p, this side alone", known(side.p, chance)]
      : ["p, q", `${known(side.p, chance)}, ${known(side.q, chance)}`],
  ]);
}

function sideTitle(place, at) {
  const where = page.where[place][at];
  return where ? `${at ? "Elsewhere" : "Where"}: ${seen(where)}` : "All rows";
}

function sideView(place, side, at) {
  const title = el("h4", {}, sideTitle(place, at), " ", badge(SIDES[page.statements[place].kind][at]));
  return el("section", { class: "side" }, title, sideFacts(side, at));
}

// Of too few rows no share is told.
function hiddenRow(label, part, a, b) {
  const total = part.rows[b];
  const text = part.counts ? `${whole(part.counts[a][b])} of ${whole(total)}` : `not shown, ${count(total, "row")}`;
  return el(
    "div",
    { class: "bar" },
    el("span", { class: "bar-label" }, label),
    svgEl(
      "svg",
      { class: "bar-plot", "aria-hidden": "true" },
      svgEl("rect", { class: "bar-back", x: 0, y: 3, width: "100%", height: 12 }),
    ),
    el("span", { class: "bar-value" }, text),
  );
}

function barRow(label, part, a, b) {
  const [share, total] = [part.shares[a][b], part.rows[b]];
  if (share === null) return hiddenRow(label, part, a, b);
  const text = part.counts
    ? `${percent(share)}, ${whole(part.counts[a][b])} of ${whole(total)}`
    : `${percent(share)}, ${count(total, "row")}`;
  const at = (one) => `${(100 * one).toFixed(2)}%`;
  return el(
    "div",
    { class: "bar" },
    el("span", { class: "bar-label" }, label),
    svgEl(
      "svg",
      { class: "bar-plot", "aria-hidden": "true" },
      svgEl("rect", { class: "bar-back", x: 0, y: 3, width: "100%", height: 12 }),
      svgEl("rect", { class: `bar-fill tone-${b % 4}`, x: 0, y: 3, width: at(share), height: 12 }),
      svgEl("line", { class: "bar-limit", x1: at(part.low[a][b]), x2: at(part.high[a][b]), y1: 9, y2: 9 }),
      [part.low, part.high].map((limit) =>
        svgEl("line", { class: "bar-limit", x1: at(limit[a][b]), x2: at(limit[a][b]), y1: 5, y2: 13 }),
      ),
    ),
    el(
      "span",
      { class: "bar-value" },
      text,
      el(
        "span",
        { class: "visually-hidden" },
        `, between ${percent(part.low[a][b])} and ${percent(part.high[a][b])}`,
      ),
    ),
  );
}

// Of two levels the second is what the first leaves; one of them is enough, that of the sentence if it has one.
function barGroups(part, first, second, told) {
  const one = Math.max(
    0,
    part.a.findIndex((code) => first.levels[code] === told),
  );
  const shown = first.levels.length === 2 && part.a.length === 2 ? [one] : part.a.map((_, a) => a);
  return shown.map((a) =>
    el(
      "div",
      { class: "bar-group" },
      el(
        "p",
        { class: "bar-title" },
        "Share with ",
        nameEl(first.name, 30),
        " = ",
        nameEl(first.levels[part.a[a]], 30),
        " by ",
        nameEl(second.name, 30),
      ),
      part.b.map((code, b) => barRow(nameEl(second.levels[code], 24), part, a, b)),
    ),
  );
}

// Rows whose given columns leave the other column one level cannot be compared.
function givenCaption(part, second, total) {
  if (!part.given.length) return count(part.n_rows, "row");
  const left = part.n_rows < total ? ` of ${whole(total)}, those where ${seen(second.name)} varies` : "";
  const given = part.given.map(seen).join(", ");
  return `${count(part.n_rows, "row")}${left}; given ${given}, mixed alike in every bar`;
}

function barsView(part, title, ends, className, total) {
  const [first, second, told] = ends;
  const hidden = first.levels.length - part.a.length + second.levels.length - part.b.length;
  return el(
    "section",
    { class: `slice ${className}` },
    el("h4", {}, title),
    el("p", { class: "small" }, givenCaption(part, second, total)),
    barGroups(part, first, second, told),
    hidden
      ? el("p", { class: "small" }, `${count(hidden, "level")} not seen here, or rare, left out.`)
      : null,
  );
}

function chartEnds(one, chart) {
  const ends = one.pair.map((name) => page.variables.find((variable) => variable.name === name));
  if (chart.column) ends.reverse();
  const { contrast } = one.evidence[chart.side];
  return [...ends, contrast ? contrast.level : null];
}

function chartView(place, chart) {
  const one = page.statements[place];
  const ends = chartEnds(one, chart);
  const className = `${one.kind} ${chart.side ? "far" : "near"}`;
  const left = chart.n_left_out;
  return el(
    "div",
    { class: "chart" },
    el(
      "div",
      { class: "slices" },
      barsView(chart.whole, sideTitle(place, chart.side), ends, className, one.evidence[chart.side].n_rows),
    ),
    chart.strata.length
      ? el(
          "details",
          { class: "strata" },
          el("summary", {}, `At each level of ${chart.whole.given.map(seen).join(", ")}`),
          el(
            "div",
            { class: "slices" },
            chart.strata.map((part) => barsView(part, seen(part.where), ends, className, part.n_rows)),
          ),
          left
            ? el("p", { class: "small" }, `${count(left, "combination")} with few rows or one level left out.`)
            : null,
        )
      : null,
  );
}

function chartsView(place) {
  if (!page.charts[place].length) return null;
  return el(
    "div",
    {},
    el(
      "div",
      { class: "charts" },
      page.charts[place].map((chart) => chartView(place, chart)),
    ),
    el("p", { class: "small" }, "Bars are shares of the rows, with 95 % intervals."),
  );
}

// Pictures first; the figures of the tests are folded below them.
function evidenceView(place) {
  const one = page.statements[place];
  const sides = one.evidence.map((side, at) => sideView(place, side, at));
  return el(
    "div",
    { class: "evidence" },
    statementFacts(one),
    chartsView(place),
    sides.length
      ? el(
          "details",
          { class: "tests" },
          el("summary", {}, "Tests"),
          el("div", { class: "sides" }, sides),
        )
      : null,
  );
}
