// The table of all statements: rows were written with the page; here they are sorted, filtered and taken away.

function statementRows() {
  return [...byId("statements").tBodies[0].rows];
}

function shownPlaces() {
  return statementRows()
    .filter((row) => !row.hidden)
    .map((row) => Number(row.dataset.statement));
}

function sortTable(button) {
  const header = button.closest("th");
  const isUp = header.getAttribute("aria-sort") !== "ascending";
  const column = header.cellIndex;
  for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", isUp ? "ascending" : "descending");
  const rows = statementRows().map((row) => ({ row, key: sortKey(row.cells[column]) }));
  rows.sort(
    (a, b) =>
      (isUp ? 1 : -1) * compareKeys(a.key, b.key) || a.row.dataset.statement - b.row.dataset.statement,
  );
  byId("statements").tBodies[0].append(...rows.map((one) => one.row));
}

function sortKey(cell) {
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
}

function compareKeys(a, b) {
  return typeof a === "number" ? a - b : byCodeUnits(a.toLocaleLowerCase(), b.toLocaleLowerCase());
}

function filterTable() {
  const words = byId("table-search").value.toLocaleLowerCase();
  const kind = byId("table-kind").value;
  for (const row of statementRows()) {
    const isKind = !kind || row.dataset.kind === kind;
    row.hidden = !isKind || !row.textContent.toLocaleLowerCase().includes(words);
  }
  const n = shownPlaces().length;
  byId("table-count").textContent = `${whole(n)} of ${count(page.statements.length, "statement")} shown`;
}

// What each statement says in the context chosen.
function showStates(answer) {
  byId("table-context").textContent = answer.nRows
    ? `In the context: ${contextText(answer.context)}.`
    : `In the context: ${contextText(answer.context)}; ${NO_ROW}.`;
  for (const row of statementRows()) {
    const place = Number(row.dataset.statement);
    const text = answer.nRows ? stateText(place, answer.states[place]) : "–";
    const cell = row.querySelector(".state");
    if (cell.textContent !== text) cell.textContent = text;
  }
}

// From the head of the page to the statements of one kind.
function showKind(kind) {
  byId("table-kind").value = kind;
  filterTable();
  byId("all").scrollIntoView();
  byId("table-kind").focus();
}

async function copyTable() {
  const text = shownPlaces()
    .map((place) => `${page.statements[place].sentence}.`)
    .join("\n");
  const note = byId("table-count");
  try {
    await navigator.clipboard.writeText(text);
    note.textContent = `${count(shownPlaces().length, "sentence")} copied`;
  } catch {
    note.textContent = "This browser does not let a page copy; take the CSV instead.";
  }
}

function makeTable() {
  for (const button of document.querySelectorAll("#statements thead button")) {
    button.addEventListener("click", () => sortTable(button));
  }
  byId("table-search").addEventListener("input", filterTable);
  byId("table-kind").addEventListener("change", filterTable);
  byId("copy").addEventListener("click", copyTable);
  byId("save-csv").addEventListener("click", () =>
    save("statements.csv", "text/csv;charset=utf-8", csvText(shownPlaces())),
  );
  byId("save-json").addEventListener("click", () =>
    save("statements.json", "application/json", jsonText(shownPlaces())),
  );
  for (const button of document.querySelectorAll("#statements button[data-statement]")) {
    button.addEventListener("click", () => openStatement(button));
  }
  for (const button of document.querySelectorAll("button[data-filter]")) {
    button.addEventListener("click", () => showKind(button.dataset.filter));
  }
  filterTable();
}

// A statement's evidence unfolds in a row of its own beneath it.
function openStatement(button) {
  const cell = button.closest("td");
  const open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!open));
  if (open) cell.querySelector(".evidence").remove();
  else cell.append(evidenceView(Number(button.dataset.statement)));
}
