// What is chosen, and what is shown of it.

const state = {
  context: page.variables.map(() => -1),
  atLeast: page.at_least,
  all: false,
  pinned: null,
  link: null,
  // What had the focus when the link was opened.
  opener: null,
  // What printing unfolded, to be folded again.
  unfolded: [],
};
const graphs = { main: null, pinned: null };
// The links last shown; null where there is nothing to compare with.
let shownLinks = null;

function choose(column, code) {
  state.context[column] = code;
  update();
}

function reset() {
  state.context.fill(-1);
  update();
  byId("reset").focus();
}

function setAll(isAll) {
  state.all = isAll;
  const box = byId("draw-all");
  if (box) box.checked = isAll;
  shownLinks = null;
  update();
}

// A choice was made: everything that depends on the context is shown anew.
function update() {
  const answer = look(state.context);
  const here = considered().filter((link) => holds(answer, link));
  byId("status").textContent = statusText(answer, shownLinks, here);
  shownLinks = answer.nRows ? here : null;
  showChips(state.context);
  showLists(answer, here);
  showWhatIf(state.context);
  draw(answer);
}

function redraw() {
  if (graphs.main) draw(look(state.context));
}

function draw(answer) {
  const compared = showCompare(answer);
  showGraph(graphs.main, scene(answer, compared));
  const said = answer.nRows ? names(shownLinks || []) || "none" : NO_ROW;
  const what = `Links of ${contextText(answer.context)}: ${said}. The lists beside it say the same.`;
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
  byId("at-least").addEventListener("change", (event) => {
    state.atLeast = Number(event.target.value);
    update();
  });
  const box = byId("draw-all");
  if (box) box.addEventListener("change", () => setAll(box.checked));
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
  showWhatIf(state.context);
}
showTheme();
document.documentElement.dataset.ready = "";
