// The status line, and the findings by what they say in the context chosen.

const STATE_WORDS = {
  holds: "hold",
  "holds in part": "hold in part",
  absent: "absent",
  "not settled": "not settled",
  fixed: "fixed",
};

// Of a context without rows the data say nothing, neither that a link holds nor that it does not.
const NO_ROW = page.contexts.note ? "no row held here is like this" : "no row of the table is like this";

function linksByState(answer) {
  const links = page.links.map((_, link) => link);
  return STATES.map((state) => [state, links.filter((link) => linkState(answer, link) === state)]);
}

function changes(before, answer) {
  if (!before || !before.nRows || !answer.nRows) return "";
  const changed = page.links
    .map((_, link) => link)
    .filter((link) => linkState(before, link) !== linkState(answer, link));
  if (!changed.length) return "Nothing changed.";
  const shown = changed
    .slice(0, 4)
    .map((link) => `${pairText(page.links[link])} ${linkState(answer, link)}`);
  const more = changed.length > shown.length ? ` and ${changed.length - shown.length} more` : "";
  return `Changed: ${shown.join(", ")}${more}.`;
}

function statusText(answer, before) {
  if (!answer.nRows) return `${contextText(answer.context)}: ${NO_ROW}.`;
  const total = hasRows ? held.counts.reduce((sum, one) => sum + one, 0) : page.n_rows;
  const part = hasRows ? whole(answer.nRows) : "some";
  const rows = answer.isWhole ? count(total, "row") : `${part} of ${count(total, "row")}`;
  const parts = linksByState(answer)
    .filter(([, links]) => links.length)
    .map(([state, links]) => `${whole(links.length)} ${STATE_WORDS[state]}`);
  const what = `${contextText(answer.context)}: ${rows}. Findings: ${parts.join(", ")}.`;
  return `${what} ${changes(before, answer)}`.trim();
}

function linkButton(link) {
  return el(
    "button",
    { type: "button", class: "link-button", "data-link": link, on: { click: () => openLink(link) } },
    el("bdi", {}, pairText(page.links[link])),
  );
}

// Why the finding says this here.
function linkNote(link, state) {
  const { kind, bound } = statementOf(link);
  const [on] = page.where[page.links[link].statement];
  if (state === "absent" && bound !== null) return `${kind}; V at most ${decimal(bound)}`;
  return state === "holds in part" ? `${kind}; where ${seen(on)}` : kind;
}

function linkItem(link, state) {
  return el(
    "li",
    { class: statementOf(link).kind },
    linkButton(link),
    el("span", { class: "small" }, ` ${linkNote(link, state)}`),
  );
}

function stateList(state, links) {
  const id = `state-${state.replaceAll(" ", "-")}`;
  return el(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    el("h3", { id: `${id}-title` }, `${state[0].toUpperCase()}${state.slice(1)} (${whole(links.length)})`),
    el("div", { class: "scroll" }, el("ul", { class: "links" }, links.map((link) => linkItem(link, state)))),
  );
}

function showLists(answer) {
  if (!answer.nRows) return refill(byId("states"), el("p", { class: "small" }, `Unknown: ${NO_ROW}.`));
  refill(
    byId("states"),
    linksByState(answer)
      .filter(([, links]) => links.length)
      .map(([state, links]) => stateList(state, links)),
  );
  return undefined;
}
