// The rows of the table, and how many of them a context has.

const page = JSON.parse(byId("page-data").textContent);

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
}

const held = {
  codes: page.contexts.codes.map((text, column) => {
    const bytes = bytesOf(text);
    return page.contexts.code_bytes[column] === 1 ? bytes : new Uint16Array(bytes.buffer);
  }),
  counts: page.contexts.counts,
};

// A page may keep no rows; then nothing is counted under a context.
const hasRows = page.contexts.n > 0;

function rowsIn(context) {
  if (!hasRows) return page.n_rows;
  const fixed = context.map((_, column) => column).filter((column) => context[column] >= 0);
  let nRows = 0;
  for (let row = 0; row < page.contexts.n; row++) {
    let place = 0;
    while (place < fixed.length && held.codes[fixed[place]][row] === context[fixed[place]]) place++;
    if (place === fixed.length) nRows += held.counts[row];
  }
  return nRows;
}

function rowsNote(answer) {
  return hasRows ? ` (${count(answer.nRows, "row")})` : "";
}

function labelsOf(context) {
  const fixed = page.variables.map((variable, column) => [variable.name, variable.levels[context[column]]]);
  return new Map(fixed.filter((_, column) => context[column] >= 0));
}

// What a context shows: its rows, and what each statement says there.
function look(context) {
  const labels = labelsOf(context);
  return {
    context: [...context],
    isWhole: labels.size === 0,
    nRows: rowsIn(context),
    states: page.statements.map((one) => stateIn(one, labels)),
  };
}

function linkState(answer, link) {
  return answer.states[page.links[link].statement];
}

// For each variable, the rows that would be left with each of its levels, the others as they are. A row counts
// for all variables if it agrees with the context, and for one if it disagrees in that one only.
function rowsByLevel(context) {
  const fixed = context.map((_, column) => column).filter((column) => context[column] >= 0);
  const totals = page.variables.map((variable) => new Float64Array(variable.levels.length));
  const add = (column, row) => {
    totals[column][held.codes[column][row]] += held.counts[row];
  };
  for (let row = 0; row < page.contexts.n; row++) {
    let [nDiffer, last] = [0, -1];
    for (const column of fixed) {
      if (held.codes[column][row] !== context[column]) [nDiffer, last] = [nDiffer + 1, column];
    }
    if (nDiffer === 1) add(last, row);
    else if (nDiffer === 0) for (let column = 0; column < totals.length; column++) add(column, row);
  }
  return totals;
}

// Where a statement is absent, the bound; else the state alone.
function stateText(place, state) {
  const { bound } = page.statements[place];
  return state === "absent" && bound !== null ? `absent (V at most ${decimal(bound)})` : state;
}

function contextText(context) {
  const parts = context.flatMap((code, column) =>
    code < 0 ? [] : `${seen(page.variables[column].name)} = ${seen(page.variables[column].levels[code])}`,
  );
  return parts.join(", ") || (page.contexts.note ? "All rows held here" : "The whole table");
}
