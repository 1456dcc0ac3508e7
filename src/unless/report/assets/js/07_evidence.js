// The evidence of a statement: what was tested, and its tables as bars with intervals.

const ANSWERS = { dependent: "depends", independent: "no dependence seen", undecided: "not enough data" };

function badge(answer) {
  return el("span", { class: `badge ${answer}` }, ANSWERS[answer]);
}

function facts(side) {
  const limits = side.answer === "dependent" ? "" : ` (at most ${decimal(side.cramers_v_limit)})`;
  const odds = side.odds_ratio;
  const rows = [
    [
      "Rows",
      side.rows_used === side.n_rows
        ? whole(side.n_rows)
        : `${whole(side.n_rows)}, ${whole(side.rows_used)} of them where both vary`,
    ],
    ["Strength (Cramér's V)", `${decimal(side.cramers_v)}${limits}`],
    ["Information", `${side.information.toFixed(4)} bits`],
    ["Test", `χ² = ${side.statistic.toFixed(2)}, ${side.df} degree${side.df === 1 ? "" : "s"} of freedom`],
    ["p, and q over all statements", `${chance(side.p)}, ${chance(side.q)}`],
  ];
  if (odds && odds.value !== null && odds.low !== null) {
    rows.push([
      "Odds ratio (95 %)",
      `${odds.value.toFixed(2)} (${odds.low.toFixed(2)} to ${odds.high.toFixed(2)})`,
    ]);
  }
  if (side.given.length) rows.push(["Given the same", side.given.map(seen).join(", ")]);
  if (side.left_out.length) rows.push(["Too many to be given", side.left_out.map(seen).join(", ")]);
  if (side.answer === "undecided") {
    rows.push([
      "To settle it",
      side.more_rows === null
        ? "no number of rows would: nothing varies"
        : `about ${count(side.more_rows, "more row")}`,
    ]);
  }
  return el(
    "dl",
    { class: "facts" },
    rows.flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)]),
  );
}

function sideView(title, side) {
  return el("section", { class: "side" }, el("h4", {}, title, " ", badge(side.answer)), facts(side));
}

function sidesView(place) {
  const one = page.statements[place];
  const titles = one.gate ? ["Where they are linked", "Elsewhere"] : ["In all rows", "In all rows"];
  return el(
    "div",
    { class: "sides" },
    one.linked ? sideView(titles[0], one.linked) : null,
    one.not_linked ? sideView(titles[1], one.not_linked) : null,
  );
}

function barRow(label, part, a, b) {
  const [n, total] = [part.counts[a][b], part.totals[b]];
  const text = `${percent(total ? n / total : 0)}, ${whole(n)} of ${whole(total)}`;
  if (!total) return null;
  const at = (share) => `${(100 * share).toFixed(2)}%`;
  return el(
    "div",
    { class: "bar" },
    el("span", { class: "bar-label" }, label),
    svgEl(
      "svg",
      { class: "bar-plot", "aria-hidden": "true" },
      svgEl("rect", { class: "bar-back", x: 0, y: 3, width: "100%", height: 12 }),
      svgEl("rect", { class: `bar-fill tone-${b % 4}`, x: 0, y: 3, width: at(n / total), height: 12 }),
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

// Of two levels the second is what the first leaves; one of them is enough.
function barGroups(part, first, second) {
  const shown = first.levels.length === 2 && part.a.length === 2 ? [0] : part.a.map((_, a) => a);
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

function slice(part, first, second) {
  const hidden = first.levels.length - part.a.length + second.levels.length - part.b.length;
  const side = part.is_linked === null ? "" : part.is_linked ? "linked" : "not-linked";
  return el(
    "section",
    { class: `slice ${side}` },
    el("h4", {}, part.where ? seen(part.where) : "All rows", " ", badge(part.answer)),
    el(
      "p",
      { class: "small" },
      `${count(part.n_rows, "row")}, V = ${decimal(part.cramers_v)}, ${chanceText("p", part.p)}`,
      part.answer === "undecided" && part.more_rows ? `; about ${whole(part.more_rows)} more would tell` : "",
    ),
    barGroups(part, first, second),
    hidden
      ? el("p", { class: "small" }, `${count(hidden, "level")} not seen here, or rare, left out.`)
      : null,
  );
}

function slicesView(place) {
  const parts = page.bars[place];
  if (!parts.length) return el("p", { class: "small" }, "The tables of this pair are not on this page.");
  const [first, second] = page.statements[place].pair.map((name) =>
    page.variables.find((one) => one.name === name),
  );
  return el(
    "div",
    {},
    el(
      "p",
      { class: "small" },
      "The rows themselves, with 95 % intervals. What is said of each part here is of these two columns alone; the statement above also holds other columns the same.",
    ),
    el(
      "div",
      { class: "slices" },
      parts.map((part) => slice(part, first, second)),
    ),
  );
}

function evidenceView(place) {
  return el("div", { class: "evidence" }, sidesView(place), slicesView(place));
}
