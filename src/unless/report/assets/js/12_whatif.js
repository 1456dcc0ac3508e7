// What if: the probabilities of every other variable under the chosen context.

const levelCounts = page.variables.map((variable) => variable.levels.length);
const joint = page.what_if.kind === "joint" ? new Float64Array(bytesOf(page.what_if.joint).buffer) : null;

// Adds up the states that agree with the context, for all variables in one pass; the last variable is fastest.
function jointMarginals(context) {
  const sums = levelCounts.map((n) => new Float64Array(n));
  const codes = levelCounts.map(() => 0);
  let total = 0;
  for (const probability of joint) {
    if (context.every((code, column) => code < 0 || code === codes[column])) {
      total += probability;
      codes.forEach((code, column) => {
        sums[column][code] += probability;
      });
    }
    for (let column = codes.length - 1; column >= 0 && ++codes[column] === levelCounts[column]; column--)
      codes[column] = 0;
  }
  return total > 0 ? sums.map((one) => one.map((sum) => sum / total)) : null;
}

function unflat(flat) {
  let begin = 0;
  return levelCounts.map((n) => flat.slice(begin, (begin += n)));
}

// One level of one variable was worked out beforehand; anything else was not.
function gateMarginals(context) {
  const fixed = context.flatMap((code, column) => (code < 0 ? [] : [[column, code]]));
  if (!fixed.length) return unflat(page.what_if.before);
  if (fixed.length > 1) return null;
  const known = page.what_if.given.find((one) => one.variable === fixed[0][0] && one.code === fixed[0][1]);
  return known ? unflat(known.marginals) : null;
}

function marginals(context) {
  if (page.what_if.kind === "none") return null;
  return joint ? jointMarginals(context) : gateMarginals(context);
}

function unknownText(context) {
  if (page.what_if.kind === "none") return "";
  if (joint) return "The model holds this context to be impossible.";
  if (!page.what_if.given.length) return `Not worked out for ${contextText(context)}.`;
  const columns = [...new Set(page.what_if.given.map((one) => page.variables[one.variable].name))].map(seen);
  return `Not worked out for ${contextText(context)}: choose one level of one of ${columns.join(", ")}.`;
}

function probabilityRow(label, now, before) {
  const fill = el("span", { class: "probability-fill" });
  const mark = el("span", { class: "probability-before" });
  fill.style.width = `${100 * now}%`;
  mark.style.left = `${100 * before}%`;
  const change = Math.abs(now - before) < 0.005 ? "" : ` (${percent(before)} with nothing given)`;
  return el(
    "li",
    {},
    el("span", { class: "bar-label" }, nameEl(label, 28)),
    el("span", { class: "probability-bar", "aria-hidden": "true" }, fill, mark),
    el("span", { class: "bar-value" }, percent(now), el("span", { class: "visually-hidden" }, change)),
  );
}

const MOST_UNSCROLLED = 8;

function probabilityCard(column, now, before) {
  const variable = page.variables[column];
  const id = `what-if-${column}`;
  // What scrolls can be reached by keyboard.
  const tabindex = variable.levels.length > MOST_UNSCROLLED ? 0 : null;
  return el(
    "section",
    { class: "card", "data-column": column },
    el("h4", { id }, nameEl(variable.name, 40)),
    el(
      "ul",
      { class: "probabilities", tabindex, "aria-labelledby": id },
      variable.levels.map((level, code) => probabilityRow(level, now[code], before[code])),
    ),
  );
}

function givenText(context) {
  if (page.what_if.kind === "none") return "";
  if (context.some((code) => code >= 0)) return `Given ${contextText(context)}:`;
  const canChange = page.links.length && (joint || page.what_if.given.length);
  return canChange ? "Nothing is given: choose a context above, and these change." : "Nothing is given.";
}

function showWhatIf(context) {
  const container = byId("what-if-answer");
  const now = marginals(context);
  byId("what-if-context").textContent = givenText(context);
  if (!now) return refill(container, el("p", {}, unknownText(context)));
  const before = unflat(page.what_if.before);
  const open = page.variables.map((_, column) => column).filter((column) => context[column] < 0);
  refill(
    container,
    open.map((column) => probabilityCard(column, now[column], before[column])),
  );
  return undefined;
}
