// What is chosen, and what is shown of it.

const state = {
  context: page.variables.map(() => -1),
  pinned: null,
  link: null,
  // What had the focus when the link was opened.
  opener: null,
  // What printing unfolded, to be folded again.
  unfolded: [],
};
const graphs = { main: null, pinned: null };
// What was shown last, to say what a choice changes.
let lastAnswer = null;

function choose(column, code) {
  state.context[column] = code;
  update();
}

function reset() {
  state.context.fill(-1);
  update();
  byId("reset").focus();
}

// A choice was made: everything that depends on the context is shown anew.
function update() {
  const answer = look(state.context);
  byId("status").textContent = statusText(answer, lastAnswer);
  lastAnswer = answer;
  showChips(state.context);
  showLists(answer);
  showStates(answer);
  showWhatIf(state.context);
  if (state.link !== null) byId("link-state").textContent = linkStateText(page.links[state.link]);
  draw(answer);
}

function redraw() {
  if (graphs.main) draw(look(state.context));
}

function draw(answer) {
  showCompare(answer);
  showGraph(graphs.main, scene(answer));
  const what = `${statusText(answer, null)} The lists beside it say the same.`;
  byId("graph").setAttribute("aria-label", what);
}

function forGraphs(action) {
  Object.values(graphs)
    .filter(Boolean)
    .forEach((cy) => action(cy));
}

function makeExplorer() {
  makeChips(byId("chips"));
  makeLinkView();
  graphs.main = makeGraph(byId("graph"), openLink);
  byId("reset").addEventListener("click", reset);
  byId("pin").addEventListener("click", pin);
  byId("unpin").addEventListener("click", unpin);
  byId("zoom-in").addEventListener("click", () => forGraphs((cy) => zoomGraph(cy, 1.3)));
  byId("zoom-out").addEventListener("click", () => forGraphs((cy) => zoomGraph(cy, 1 / 1.3)));
  byId("zoom-fit").addEventListener("click", () => forGraphs(fitGraph));
  byId("save-svg").addEventListener("click", () =>
    saveSvg(scene(look(state.context)), contextText(state.context)),
  );
  byId("save-png").addEventListener("click", () => savePng(graphs.main, palette().paper));
}

makeTheme();
makeFindings();
makeTable();
if (page.links.length) {
  makeExplorer();
  update();
} else {
  showStates(look(state.context));
  showWhatIf(state.context);
}
showTheme();
document.documentElement.dataset.ready = "";
