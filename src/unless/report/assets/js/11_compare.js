// Two contexts side by side: one is kept, the other follows the chips.

function pin() {
  state.pinned = [...state.context];
  redraw();
  byId("status").textContent =
    `${contextText(state.pinned)} is kept as A. Choose another context to compare it with.`;
  byId("unpin").focus();
}

function unpin() {
  state.pinned = null;
  redraw();
  byId("pin").focus();
}

function showCompare(b) {
  const isOn = state.pinned !== null;
  document.body.classList.toggle("comparing", isOn);
  byId("pinned").hidden = !isOn;
  byId("compared").hidden = !isOn;
  byId("pin").hidden = isOn;
  byId("unpin").hidden = !isOn;
  byId("graph-caption").textContent = isOn
    ? `B: ${contextText(b.context)}${rowsNote(b)}`
    : contextText(b.context);
  if (!isOn) return;
  const a = look(state.pinned);
  byId("pinned-caption").textContent = `A: ${contextText(a.context)}${rowsNote(a)}`;
  graphs.pinned = graphs.pinned || makeGraph(byId("pinned-graph"), openLink);
  showGraph(graphs.pinned, scene(a));
  showCompared(a, b);
}

function comparedRow(link, a, b) {
  const { statement } = page.links[link];
  const cells = [a, b].map((answer) => stateText(statement, linkState(answer, link)));
  return el(
    "tr",
    { class: cells[0] === cells[1] ? null : "apart" },
    el("th", { scope: "row" }, linkButton(link)),
    el("td", {}, page.statements[statement].kind),
    cells.map((text) => el("td", {}, text)),
  );
}

// Pairs that say something else in A than in B stand first.
function showCompared(a, b) {
  if (!a.nRows || !b.nRows) {
    const text = `There is nothing to compare: of ${a.nRows ? "B" : "A"}, ${NO_ROW}.`;
    refill(byId("compared-states"), el("p", { class: "small" }, text));
    return;
  }
  const isAlike = (link) => linkState(a, link) === linkState(b, link);
  const links = page.links.map((_, link) => link);
  const ordered = [...links.filter((link) => !isAlike(link)), ...links.filter(isAlike)];
  refill(
    byId("compared-states"),
    el(
      "div",
      // What scrolls can be reached by keyboard.
      { class: "scroll", role: "region", "aria-labelledby": "compared-title", tabindex: "0" },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["Pair", "Kind", `A: ${contextText(a.context)}`, `B: ${contextText(b.context)}`].map((title) =>
              el("th", { scope: "col" }, title),
            ),
          ),
        ),
        el(
          "tbody",
          {},
          ordered.map((link) => comparedRow(link, a, b)),
        ),
      ),
    ),
  );
}
