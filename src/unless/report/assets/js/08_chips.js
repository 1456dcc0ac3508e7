// Chips: a group of radio inputs for each variable, by which a context is chosen.

function chip(column, code, text) {
  const input = el("input", {
    type: "radio",
    name: `variable-${column}`,
    id: `chip-${column}-${code}`,
    value: code,
    checked: code < 0,
    on: { change: () => choose(column, code) },
  });
  const rows = code < 0 || !hasRows ? null : el("span", { class: "chip-rows", id: `rows-${column}-${code}` });
  return el(
    "span",
    { class: "chip" },
    input,
    el(
      "label",
      { for: input.id },
      text,
      ...(rows ? [" ", rows, el("span", { class: "visually-hidden" }, " rows")] : []),
    ),
  );
}

function chipGroup(column) {
  const variable = page.variables[column];
  const switches = variable.n_gated
    ? el("span", { class: "small" }, ` gate of ${count(variable.n_gated, "link")}`)
    : null;
  return el(
    "fieldset",
    { class: "chips", "data-column": column },
    el("legend", {}, nameEl(variable.name, 40), switches),
    el(
      "div",
      { class: "chip-row" },
      chip(column, -1, "any"),
      variable.levels.map((level, code) => chip(column, code, nameEl(level, 28))),
    ),
  );
}

// Variables of gates come first: they are what a context is worth choosing by.
function chipOrder() {
  const places = page.variables.map((_, column) => column);
  return places.sort((a, b) => page.variables[b].n_gated - page.variables[a].n_gated || a - b);
}

const FIRST_CHIPS = 8;

function makeChips(container) {
  const order = chipOrder();
  const first = order.slice(0, FIRST_CHIPS).map(chipGroup);
  const rest = order.slice(FIRST_CHIPS).map(chipGroup);
  if (!rest.length) return refill(container, first);
  const find = el("input", {
    type: "search",
    id: "chip-search",
    placeholder: "Find a column",
    "aria-label": "Find a column",
    on: { input: (event) => findChips(container, event.target.value) },
  });
  refill(
    container,
    find,
    first,
    el("details", { id: "more-chips" }, el("summary", {}, `${count(rest.length, "more column")}`), rest),
  );
  return undefined;
}

function findChips(container, text) {
  const wanted = text.toLocaleLowerCase();
  for (const group of container.querySelectorAll("fieldset")) {
    const name = page.variables[Number(group.dataset.column)].name;
    group.hidden = !name.toLocaleLowerCase().includes(wanted);
  }
  if (wanted) byId("more-chips").open = true;
}

function showChips(context) {
  rowsByLevel(context).forEach((totals, column) => {
    byId(`chip-${column}-${context[column]}`).checked = true;
    if (!hasRows) return;
    totals.forEach((total, code) => {
      const rows = byId(`rows-${column}-${code}`);
      const text = whole(total);
      if (rows.textContent !== text) rows.textContent = text;
      rows.parentElement.classList.toggle("empty", total === 0);
    });
  });
}
