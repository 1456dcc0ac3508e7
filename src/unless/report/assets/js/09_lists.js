// The status line, and the lists of what is linked and what is independent only here.

function names(links) {
  const shown = links.slice(0, 4).map((link) => pairText(page.links[link]));
  return shown.join(", ") + (links.length > shown.length ? ` and ${links.length - shown.length} more` : "");
}

function changes(before, after) {
  if (before === null) return "";
  const gone = before.filter((link) => !after.includes(link));
  const back = after.filter((link) => !before.includes(link));
  const parts = [gone.length ? `Gone: ${names(gone)}.` : "", back.length ? `Back: ${names(back)}.` : ""];
  return parts.filter(Boolean).join(" ") || "No link changed.";
}

// Of a context without rows the data say nothing, neither that a link holds nor that it does not.
const NO_ROW = page.contexts.note ? "no row held here is like this" : "no row of the table is like this";

function statusText(answer, before, after) {
  const total = held.counts.reduce((sum, one) => sum + one, 0);
  if (!answer.nRows) return `${contextText(answer.context)}: ${NO_ROW}.`;
  const rows = answer.isWhole ? count(total, "row") : `${whole(answer.nRows)} of ${count(total, "row")} left`;
  return `${contextText(answer.context)}: ${rows}, ${after.length} of ${count(considered().length, "link")}. ${changes(before, after)}`.trim();
}

function whyNot(link) {
  const side = page.statements[page.links[link].statement].not_linked;
  if (!side) return null;
  if (side.answer === "undecided") return "not enough data to be sure";
  return side.answer === "independent"
    ? `where its gate is shut, V is at most ${decimal(side.cramers_v_limit)}`
    : "though the data show a dependence";
}

function linkItem(link, note) {
  const button = el(
    "button",
    { type: "button", class: "link-button", "data-link": link, on: { click: () => openLink(link) } },
    el("bdi", {}, pairText(page.links[link])),
  );
  return el(
    "li",
    { class: isGated(link) ? "gated" : "" },
    button,
    note ? el("span", { class: "small" }, ` ${note}`) : null,
  );
}

function linkList(container, links, note, empty) {
  refill(
    container,
    links.length
      ? el(
          "ul",
          { class: "links" },
          links.map((link) => linkItem(link, note(link))),
        )
      : el("p", { class: "small" }, empty),
  );
}

function byStrength(links) {
  return [...links].sort((a, b) => strength(b) - strength(a) || a - b);
}

function showLists(answer, here) {
  const gone = answer.nRows ? considered().filter((link) => !here.includes(link)) : [];
  byId("here-count").textContent = here.length;
  byId("gone-count").textContent = gone.length;
  linkList(
    byId("linked-here"),
    byStrength(here),
    (link) => `${percent(answer.shares[link])} of rows`,
    answer.nRows ? "No link holds here." : `Unknown: ${NO_ROW}.`,
  );
  linkList(
    byId("independent-here"),
    byStrength(gone),
    whyNot,
    answer.isWhole
      ? "Choose a context to see what it switches off."
      : answer.nRows
        ? "Every link holds here."
        : `Unknown: ${NO_ROW}.`,
  );
}
