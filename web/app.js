// SPDX-License-Identifier: Apache-2.0
// The page: tabs, tools, inputs on the left, results on the right; two scenarios side by side.
import drawDiagnose from "./draw_diagnose.js";
import drawWhatIf from "./draw_whatif.js";
import drawWiring from "./draw_wiring.js";
import {get, post, Gone} from "./api.js";
import {acceleratorSelect, drawControls, esc, priceNote} from "./controls.js";
import {drawFiles, take} from "./files.js";
import {changesOf, comparisonHtml, errorHtml, filesOf, jobRequest, listPrice, Pane, Question} from "./results.js";
import {fresh, fromFragment, keep, kept, lastWritten, restore, state, toFragment, written} from "./state.js";
import {download, glossary, share, studies} from "./studies.js";
import {drawWhatIfInputs, whatIfOptions} from "./whatif.js";
import {keepReader, loadWords, reader, t} from "./words.js";

const byId = id => document.getElementById(id);
const tabs = {plan: "Plan", whatif: "What if", wiring: "Wiring", diagnose: "Diagnosis"};
let catalogue = {models: [], hosts: [], accelerators: []};
let study = "", version = 0;

const hooks = {
  answered(name, kind, error) {
    online();
    if (kind === "move") return compared();
    const pane = panes[name] ?? questions[state.tab];
    byId("status").textContent = error ? error.message : pane?.root.querySelector("h1").textContent ?? "";
    if (panes[name] && !error) adoptJob(name);
    compared();
    notePrice();
  },
  gone: offline,
  broken(error) { byId("banner").hidden = false; byId("banner").innerHTML = `<b>${esc(t("This page made a mistake"))}:</b> ${esc(error.message)} <button type="button">${esc(t("reload"))}</button>`; byId("banner").querySelector("button").onclick = () => location.reload(); },
  strategy(name, text) { state.active = name; state[name].strategy = text; inputs(); changed("rest"); byId("results").scrollTo({top: 0}); },
};
const panes = {a: new Pane("a", hooks), b: new Pane("b", hooks)};
const questions = {whatif: new Question(hooks), wiring: new Question(hooks), diagnose: new Question(hooks)};

// A job file's own sizes, where its sliders have not been moved.
function adoptJob(name) {
  const s = state[name], job = panes[name].parts?.data.job;
  if (!s.job || !job) return;
  let moved = false;
  for (const k of ["gpus", "batch", "sequence", "precision"]) if (!s.moved.includes(k) && job[k] && s[k] !== job[k]) { s[k] = job[k]; moved = true; }
  if (moved && name === state.active) inputs();
}
function compared() {
  const box = byId("compare");
  if (box) box.innerHTML = comparisonHtml(panes.a.now, panes.b.now, state.a, state.b);
}
async function notePrice() {
  const note = byId("price-note"), s = state[state.active];
  if (!note) return;
  const price = s.price ? null : await listPrice(s).catch(() => null);
  note.textContent = priceNote(s, price);
  if (!s.price && price) { const out = byId("o-price"); if (out) out.textContent = "$" + price.usd.toFixed(2); }
}

// ---- the server went away and comes back
let waiting = 0;
function offline() {
  const banner = byId("banner");
  banner.hidden = false;
  banner.innerHTML = `<b>${esc(t("The server does not answer."))}</b> ${esc(t("Everything you entered is kept in this browser. Start chokepoint serve again; this page goes on by itself."))} <button type="button">${esc(t("try now"))}</button>`;
  banner.querySelector("button").onclick = again;
  clearTimeout(waiting);
  waiting = setTimeout(again, 2000);
}
async function again() {
  clearTimeout(waiting);
  try { await get("catalogue"); } catch (error) { if (error instanceof Gone) return offline(); }
  online();
  if (!catalogue.models.length) return start();
  ask("rest", true);
}
function online() { if (!byId("banner").hidden) { byId("banner").hidden = true; clearTimeout(waiting); } }

// ---- frame
function frame() {
  document.documentElement.lang = reader.lang;
  document.title = (study ? study + " \u00b7 " : "") + "Chokepoint";
  byId("skip").textContent = t("Skip to the results");
  const nav = byId("tabs");
  nav.setAttribute("aria-label", t("What to look at"));
  nav.innerHTML = Object.entries(tabs).map(([k, name]) => `<button type="button" data-tab="${k}"${k === state.tab ? ' aria-current="page"' : ""}>${esc(t(name))}</button>`).join("");
  for (const b of nav.querySelectorAll("button")) b.onclick = () => { state.tab = b.dataset.tab; frame(); inputs(); results(); changed("rest"); };
  const tools = byId("tools"), dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
  tools.innerHTML = `<button type="button" id="compare-button" aria-pressed="${!!state.b}">${esc(t("Compare"))}</button><button type="button" id="studies">${esc(t("Studies"))}</button><button type="button" id="share">${esc(t("Share"))}</button><button type="button" id="terms">${esc(t("Terms"))}</button>` +
    `<button type="button" id="lang" lang="${reader.lang === "ru" ? "en" : "ru"}" aria-label="${reader.lang === "ru" ? "English" : "\u0420\u0443\u0441\u0441\u043a\u0438\u0439"}">${reader.lang === "ru" ? "EN" : "RU"}</button><button type="button" id="scheme" aria-label="${esc(t(dark ? "light colours" : "dark colours"))}">${dark ? "\u2600" : "\u263e"}</button>`;
  byId("compare-button").onclick = compare;
  byId("studies").onclick = () => studies({name: study || describe(), open: (doc, name) => { study = name; open(doc); }, saved: name => { study = name; document.title = name + " \u00b7 Chokepoint"; }});
  byId("share").onclick = () => share({name: study || describe(), reports});
  byId("terms").onclick = glossary;
  byId("lang").onclick = async () => { reader.lang = reader.lang === "ru" ? "en" : "ru"; keepReader({lang: reader.lang}); await loadWords(); all(); byId("lang").focus(); };
  byId("scheme").onclick = () => { document.documentElement.dataset.theme = dark ? "light" : "dark"; keepReader({theme: dark ? "light" : "dark"}); frame(); byId("scheme").focus(); };
}
const describe = () => { const s = state[state.active]; return s.job || `${s.model}, ${s.gpus} \u00d7 ${s.cluster}`; };

function compare() {
  if (state.b) { if (state.active === "b") state.a = state.b; state.b = null; state.active = "a"; } else { state.b = {...state.a, moved: [...state.a.moved]}; state.active = "b"; }
  if (state.tab !== "plan") state.tab = "plan";
  all();
  byId("compare-button").focus();
}

// ---- inputs
function inputs() {
  const panel = byId("panel"), focused = document.activeElement?.id;
  panel.setAttribute("aria-label", t("Inputs"));
  panel.onsubmit = e => e.preventDefault();
  const which = state.b ? `<div class="which" role="group" aria-label="${esc(t("Scenario to change"))}">${["a", "b"].map(k => `<button type="button" data-which="${k}" aria-pressed="${k === state.active}">${k.toUpperCase()}</button>`).join("")}</div>` : "";
  panel.innerHTML = `${which}<div id="own"></div><div id="work"></div><div id="dropped"></div><button type="button" class="link" id="reset">${esc(t("start afresh"))}</button>`;
  for (const b of panel.querySelectorAll("[data-which]")) b.onclick = () => { state.active = b.dataset.which; inputs(); marks(); byId("panel").querySelector(`[data-which=${state.active}]`).focus(); };
  const s = state[state.active], own = byId("own");
  if (state.tab === "wiring") drawWiringInputs(own);
  if (state.tab === "whatif") drawWhatIfInputs(own, s, () => changed("rest"));
  if (state.tab === "plan" || state.tab === "whatif") {
    drawControls(byId("work"), s, {catalogue, files: state.files, price: null, what: state.tab}, (kind, key) => {
      if (key === "job") s.moved = [];
      changed(kind);
      if (kind === "rest" && ["job", "plain", "strategy", "cluster"].includes(key)) inputs();
      if (kind === "rest") { const plain = byId("plain"); if (plain) plain.disabled = !changesOf(s).length; }
    });
    notePrice();
  }
  drawFiles(byId("dropped"), list => list ? dropped(list) : all());
  const reset = byId("reset");
  reset.onclick = () => {
    if (!reset.dataset.sure) { reset.dataset.sure = "yes"; reset.textContent = t("really? files and inputs go"); return; }
    study = ""; Object.assign(state, fresh()); all();
  };
  if (focused && focused !== document.activeElement?.id) byId(focused)?.focus({preventScroll: true});
}
const operations = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"];
function drawWiringInputs(box) {
  const s = state[state.active], files = state.files.filter(f => f.kind === "wiring");
  const host = files.length ? `<p class="note">${esc(t("The dropped wiring files are read together as one cluster."))}</p>` + acceleratorSelect(catalogue, s)
    : `<div class="field"><div class="row"><label for="f-cluster">${esc(t("Cluster"))}</label></div><select id="f-cluster">${catalogue.hosts.map(h => `<option${h.name === s.cluster ? " selected" : ""} value="${esc(h.name)}">${esc(h.name)} \u00b7 ${h.gpus} \u00d7 ${esc(h.accelerator || "GPU")}</option>`).join("")}</select></div><div class="field"><div class="row"><label for="f-hosts">${esc(t("Hosts"))}</label></div><input id="f-hosts" inputmode="numeric" value="${state.wiring.hosts}"></div>`;
  box.innerHTML = host + `<div class="field"><div class="row"><label for="f-expect">${esc(t("Collective to expect"))}</label></div><select id="f-expect"><option value="">${esc(t("none"))}</option>${operations.map(o => `<option${o === state.wiring.expect ? " selected" : ""}>${o}</option>`).join("")}</select></div>`;
  const cluster = byId("f-cluster");
  if (cluster) cluster.onchange = () => { s.cluster = cluster.value; changed("rest"); };
  const accelerator = byId("f-accelerator");
  if (accelerator) accelerator.onchange = () => { s.accelerator = accelerator.value; changed("rest"); };
  const hosts = byId("f-hosts");
  if (hosts) hosts.onchange = () => { const n = Math.round(Number(hosts.value)); state.wiring.hosts = n >= 1 && n <= 1048576 ? n : 1; hosts.value = state.wiring.hosts; changed("rest"); };
  byId("f-expect").onchange = e => { state.wiring.expect = e.target.value; changed("rest"); };
}

// ---- results
function results() {
  const box = byId("results");
  box.replaceChildren();
  box.className = state.tab === "plan" && state.b ? "both" : "";
  if (state.tab === "plan") {
    if (state.b) { const top = document.createElement("div"); top.id = "compare"; box.append(top, panes.a.root, panes.b.root); compared(); } else box.append(panes.a.root);
  } else box.append(questions[state.tab].root);
  marks();
}
function marks() {
  for (const k of ["a", "b"]) { panes[k].root.dataset.name = state.b ? k.toUpperCase() : ""; panes[k].root.classList.toggle("active", !!state.b && k === state.active); }
}

let saving = 0;
function changed(kind) {
  ask(kind);
  clearTimeout(saving);
  saving = setTimeout(save, kind === "move" ? 400 : 50);
}
async function save() {
  keep();
  const at = ++version, hash = await toFragment();
  if (at !== version) return;
  history.replaceState(null, "", location.pathname + hash);
  written(hash);
}
function ask(kind, both = false) {
  if (state.tab === "plan") {
    for (const k of ["a", "b"]) if (state[k] && (both || k === state.active || !panes[k].parts)) panes[k].request(kind);
    return;
  }
  if (kind === "move") return;
  if (state.tab === "whatif") return askWhatIf();
  if (state.tab === "wiring") return askWiring();
  askDiagnose();
}
function askWhatIf() {
  const s = state[state.active], request = jobRequest({...s, price: 0}, null), options = {...request.options, ...whatIfOptions(s, changesOf(s)), page: "whole"};
  if (s.strategy) options.strategy = s.strategy;
  if (s.price) options.price = s.price;
  questions.whatif.ask("whatif", {...request, options}, drawWhatIf);
}
function wiringRequest() {
  const files = filesOf(["wiring"]), names = Object.keys(files), options = {lang: reader.lang};
  if (state.wiring.expect) options.expect = [state.wiring.expect];
  if (names.length && state[state.active].accelerator) options.accelerator = state[state.active].accelerator;
  if (!names.length) options.hosts = state.wiring.hosts;
  return {inputs: names.length ? names : [state[state.active].cluster], files, options};
}
function askWiring() {
  const request = wiringRequest();
  questions.wiring.ask("wiring", {...request, options: {...request.options, page: "whole"}}, drawWiring);
}
function askDiagnose() {
  const files = filesOf(["trace"]), names = Object.keys(files), pane = questions.diagnose;
  if (!names.length) {
    pane.parts = null;
    pane.root.querySelector("h1").textContent = t("Drop traces here to see where the time went");
    pane.root.querySelector(".then").textContent = "";
    pane.root.querySelector(".facts").textContent = t("PyTorch profiler and Nsight traces of any number of ranks, flight recorder dumps, trainer logs. They stay on this machine.");
    pane.root.querySelector("[data-part]").replaceChildren();
    return;
  }
  pane.ask("diagnose", {inputs: names, files, options: {lang: reader.lang, page: "whole"}}, drawDiagnose);
}

/// The open result as a file of the command line's own making.
async function reports(kind) {
  const extension = {html: "html", markdown: "md", csv: "csv"}[kind], name = "chokepoint." + extension;
  const s = state[state.active];
  let operation = state.tab, request = {};
  if (state.tab === "plan" || state.tab === "whatif") {
    const price = s.price ? null : await listPrice(s);
    request = jobRequest(s, price);
    if (s.strategy) request.options.strategy = s.strategy;
    if (state.tab === "plan") { operation = s.strategy ? "predict" : "plan"; const change = changesOf(s); if (change.length) request.options.change = change; }
    else { Object.assign(request.options, whatIfOptions(s, changesOf(s))); }
  } else if (state.tab === "wiring") {
    request = wiringRequest();
  } else {
    const files = filesOf(["trace"]);
    request = {inputs: Object.keys(files), files, options: {lang: reader.lang}};
  }
  request.options[kind] = name;
  const answer = await post(operation, request);
  download(name, (answer.written ?? answer.files)[name], {html: "text/html", markdown: "text/markdown", csv: "text/csv"}[kind]);
}

// ---- whole page
function all() { frame(); inputs(); results(); for (const k of ["whatif", "wiring", "diagnose"]) if (k !== state.tab) questions[k].parts = null; ask("rest", true); clearTimeout(saving); saving = setTimeout(save, 50); }
function open(doc) { restore(doc); all(); }
async function dropped(list) {
  await take(list, {open, refuse: text => { byId("status").textContent = text; questions[state.tab]?.say(errorHtml({message: text})); }});
  all();
}

function dropZone() {
  const zone = byId("drop");
  let depth = 0;
  addEventListener("dragenter", e => { if (e.dataTransfer?.types.includes("Files")) { ++depth; zone.textContent = t("Drop wiring, configs or traces"); zone.hidden = false; } });
  addEventListener("dragleave", () => { if (--depth <= 0) { depth = 0; zone.hidden = true; } });
  addEventListener("dragover", e => e.preventDefault());
  addEventListener("drop", e => { e.preventDefault(); depth = 0; zone.hidden = true; if (e.dataTransfer?.files.length) dropped([...e.dataTransfer.files]); });
}

async function start() {
  await loadWords().catch(() => {});
  frame();
  inputs();
  results();
  try {
    const got = await get("catalogue");
    catalogue = {models: got.models.models ?? got.models, hosts: got.clusters?.hosts ?? got.hosts, accelerators: got.accelerators.accelerators ?? got.accelerators};
  } catch (error) {
    return error instanceof Gone ? offline() : hooks.broken(error);
  }
  all();
}

restore(kept() ?? {});
// An address that this browser wrote itself may be older than what it keeps.
try { const linked = location.hash === lastWritten() ? null : await fromFragment(location.hash); if (linked) restore(linked); } catch { byId("status").textContent = t("The link is damaged; the last state of this browser is shown."); }
addEventListener("pagehide", keep);
addEventListener("hashchange", async () => { try { const linked = await fromFragment(location.hash); if (linked) open(linked); } catch { /* not one of this page's links */ } });
dropZone();
start();
