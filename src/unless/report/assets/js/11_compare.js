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

function whose(a, b) {
  if (!a.nRows || !b.nRows) return () => "unsure";
  return (link) => {
    const [inA, inB] = [holds(a, link), holds(b, link)];
    return inA === inB ? "unsure" : inA ? "only-a" : "only-b";
  };
}

function showCompare(b) {
  const isOn = state.pinned !== null;
  document.body.classList.toggle("comparing", isOn);
  byId("pinned").hidden = !isOn;
  byId("differences").hidden = !isOn;
  byId("pin").hidden = isOn;
  byId("unpin").hidden = !isOn;
  byId("graph-caption").textContent = isOn ? `B: ${contextText(b.context)}` : contextText(b.context);
  if (!isOn) return null;
  const a = look(state.pinned);
  byId("pinned-caption").textContent = `A: ${contextText(a.context)} (${count(a.nRows, "row")})`;
  const compared = whose(a, b);
  graphs.pinned = graphs.pinned || makeGraph(byId("pinned-graph"), openLink);
  showGraph(graphs.pinned, scene(a, compared));
  showDifferences(a, b, compared);
  return compared;
}

function showDifferences(a, b, compared) {
  if (!a.nRows || !b.nRows) {
    const text = `There is nothing to compare: of ${a.nRows ? "B" : "A"}, ${NO_ROW}.`;
    return refill(byId("differences-lists"), el("p", { class: "small" }, text));
  }
  const all = byStrength(considered());
  const lists = [
    ["only-a", `Only in A: ${contextText(a.context)}`, all.filter((link) => compared(link) === "only-a")],
    ["only-b", `Only in B: ${contextText(b.context)}`, all.filter((link) => compared(link) === "only-b")],
    ["both", "In both", all.filter((link) => holds(a, link) && holds(b, link))],
  ];
  refill(
    byId("differences-lists"),
    lists.map(([id, title, links]) => {
      const list = el("div", { id: `difference-${id}`, class: `difference scroll ${id}` });
      linkList(list, links, () => null, "None.");
      return el(
        "section",
        {},
        el(
          "h4",
          {},
          el("span", { class: `swatch ${id}`, "aria-hidden": "true" }),
          `${title} (${links.length})`,
        ),
        list,
      );
    }),
  );
  return undefined;
}
