// The link view: everything that is known of one pair.

function openLink(link) {
  state.link = link;
  state.opener = document.activeElement;
  showLink();
  redraw();
  byId("link-title").focus();
}

function closeLink() {
  const link = state.link;
  state.link = null;
  showLink();
  redraw();
  // Back to where the link was opened, or as near as there still is something.
  const places = [state.opener, document.querySelector(`[data-link="${link}"]`), byId("reset")];
  places.find((one) => one && one.isConnected && one.offsetParent).focus();
}

function showLink() {
  const view = byId("link-view");
  view.hidden = state.link === null;
  if (state.link === null) return refill(view);
  const one = page.links[state.link];
  const title = el("h3", { id: "link-title", tabindex: "-1" }, el("bdi", {}, pairText(one)));
  const close = el("button", { type: "button", id: "close-link", on: { click: closeLink } }, "Close");
  const sentence = `${seen(page.statements[one.statement].sentence)}.`;
  refill(
    view,
    el("div", { class: "row spread" }, title, close),
    el("p", { class: "sentence" }, el("bdi", {}, sentence)),
    el("p", { id: "link-state" }, linkStateText(one)),
    evidenceView(one.statement),
  );
  return undefined;
}

function linkStateText(one) {
  const answer = look(state.context);
  const context = contextText(answer.context);
  return answer.nRows
    ? `${context}: ${stateText(one.statement, answer.states[one.statement])}.`
    : `${context}: ${NO_ROW}.`;
}

function makeLinkView() {
  byId("link-view").addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeLink();
  });
}

// A finding's evidence is built when it is first opened.
function makeFindings() {
  for (const details of document.querySelectorAll("details[data-statement]")) {
    details.addEventListener("toggle", () => fillFinding(details));
  }
  for (const button of document.querySelectorAll("button[data-show]")) {
    const link = page.links.findIndex((one) => one.statement === Number(button.dataset.show));
    button.addEventListener("click", () => openLink(link));
  }
}

function fillFinding(details) {
  const body = details.querySelector(".finding-body");
  if (details.open && !body.childElementCount) body.append(evidenceView(Number(details.dataset.statement)));
}
