// Which links hold in a context: the rows that agree with it are found, and their graphs counted.

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
  graph: new Uint32Array(bytesOf(page.contexts.graph).buffer),
  graphs: bytesOf(page.contexts.graphs),
  linksOf: new Array(page.contexts.n_graphs),
};

// The links of a graph, unpacked when first asked for.
function linksOf(graph) {
  if (!held.linksOf[graph]) {
    const found = [];
    const begin = graph * page.contexts.stride;
    for (let link = 0; link < page.links.length; link++) {
      if ((held.graphs[begin + (link >> 3)] >> (link & 7)) & 1) found.push(link);
    }
    held.linksOf[graph] = Uint32Array.from(found);
  }
  return held.linksOf[graph];
}

function agreeing(context) {
  const fixed = context.map((_, column) => column).filter((column) => context[column] >= 0);
  const rows = [];
  for (let row = 0; row < page.contexts.n; row++) {
    let place = 0;
    while (place < fixed.length && held.codes[fixed[place]][row] === context[fixed[place]]) place++;
    if (place === fixed.length) rows.push(row);
  }
  return rows;
}

// What a context shows: its rows, and for each link the share of them in which it holds. Of the whole table that is
// known even where the page does not hold all rows.
function look(context) {
  const rows = agreeing(context);
  const weights = new Float64Array(page.contexts.n_graphs);
  let nRows = 0;
  for (const row of rows) {
    nRows += held.counts[row];
    weights[held.graph[row]] += held.counts[row];
  }
  const shares = new Float64Array(page.links.length);
  weights.forEach((weight, graph) => {
    if (weight) for (const link of linksOf(graph)) shares[link] += weight;
  });
  for (let link = 0; link < shares.length; link++) shares[link] = nRows ? shares[link] / nRows : 0;
  const isWhole = context.every((code) => code < 0);
  if (isWhole) page.links.forEach((one, link) => (shares[link] = one.share));
  return { context: [...context], isWhole, nRows, shares };
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

// In the whole table a link is drawn wherever it holds; in a context, where enough of its rows have it.
function holds(answer, link) {
  const share = answer.shares[link];
  return answer.isWhole ? share > 0 : share > 0 && share >= state.atLeast;
}

function considered() {
  return page.links.map((_, link) => link).filter((link) => page.links[link].drawn || state.all);
}

function contextText(context) {
  const parts = context.flatMap((code, column) =>
    code < 0 ? [] : `${seen(page.variables[column].name)} = ${seen(page.variables[column].levels[code])}`,
  );
  return parts.join(", ") || (page.contexts.note ? "All rows held here" : "The whole table");
}
