// SPDX-License-Identifier: Apache-2.0
// The inputs of a scenario. Every control writes into the scenario and says whether it moves or has come to rest.
import {help} from "./terms.js";
import {count, reader, t} from "./words.js";

const esc = s => String(s ?? "").replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));
export {esc};

const doubling = (from, to, between) => {
  const out = [];
  for (let v = from; v <= to; v *= 2) { out.push(v); if (between && v * 1.5 < to && Number.isInteger(v * 1.5)) out.push(v * 1.5); }
  return out;
};
const factors = [.125, .25, .375, .5, .625, .75, .875, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6, 8];
const prices = [.25, .5, .75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 10, 12];
export const times = v => "\u00d7" + (v >= 1 ? +v.toFixed(2) : +v.toFixed(3));
const usd = v => "$" + (+v).toFixed(2);

export const sliders = {
  gpus: {name: "Accelerators", values: s => [1, 2, 4, ...doubling(8, 16384, true).filter(v => v % 8 === 0)], show: count},
  batch: {name: "Batch", values: () => doubling(8, 65536, true), show: count},
  sequence: {name: "Sequence", values: () => doubling(512, 131072, true), show: count},
  network: {name: "Network between hosts", values: () => factors, show: times},
  nvlink: {name: "Links between GPUs", values: () => factors, show: times},
  latency: {name: "Latency of collectives", values: () => factors, show: times},
  hbm: {name: "Device memory bandwidth", values: () => factors, show: times},
  host: {name: "Speed of the host", values: () => factors, show: times},
  price: {name: "Price of an accelerator-hour", values: () => prices, show: usd},
};
export const precisions = ["bf16", "fp16", "fp8", "fp4", "tf32", "fp32"];
export const frameworks = ["megatron", "pytorch", "torchtitan", "deepspeed", "megatron-deepspeed", "nanotron", "llm-foundry", "fms-fsdp", "maxtext"];

export const helpOf = key => help[key]?.[reader.lang] ?? "";
const label = (key, name, target) => `<label for="${target}">${esc(t(name))}</label>` +
  (help[key] ? `<button type="button" class="what" data-tip="${esc(helpOf(key))}" aria-label="${esc(t("What is this: {}", t(name)))}">?</button>` : "");

const nearestIndex = (values, v) => values.reduce((best, x, i) => Math.abs(Math.log(x / v)) < Math.abs(Math.log(values[best] / v)) ? i : best, 0);

function sliderHtml(key, s, priced) {
  const k = sliders[key], values = k.values(s), v = key === "price" ? s.price || priced || 2 : s[key];
  const typed = ["gpus", "batch", "sequence"].includes(key);
  const figure = typed ? `<input class="exact" id="x-${key}" inputmode="numeric" value="${v}" aria-label="${esc(t("{}, exact", t(k.name)))}">`
    : `<output id="o-${key}" for="f-${key}">${k.show(v)}</output>`;
  return `<div class="slider"><div class="row">${label(key, k.name, "f-" + key)}${figure}</div>` +
    `<input type="range" id="f-${key}" data-key="${key}" min="0" max="${values.length - 1}" step="1" value="${nearestIndex(values, v)}" aria-valuetext="${esc(k.show(v))}"></div>`;
}

const option = (value, text, chosen) => `<option value="${esc(value)}"${value === chosen ? " selected" : ""}>${esc(text)}</option>`;
function select(key, name, groups, chosen) {
  const body = groups.map(([head, entries]) => (head ? `<optgroup label="${esc(head)}">` : "") + entries.map(([v, text]) => option(v, text, chosen)).join("") + (head ? "</optgroup>" : "")).join("");
  return `<div class="field"><div class="row">${label(key, name, "f-" + key)}</div><select id="f-${key}" data-key="${key}">${body}</select></div>`;
}

function modelGroups(catalogue, files, chosen) {
  const by = new Map();
  for (const m of catalogue.models) by.set(m.family, [...(by.get(m.family) ?? []), [m.name, m.name]]);
  const groups = [...by].map(([family, entries]) => [family, entries]);
  const own = files.filter(f => f.kind === "model").map(f => [f.name, f.name]);
  if (own.length) groups.unshift([t("Files"), own]);
  return known(groups, chosen);
}
function clusterGroups(catalogue, files, chosen) {
  const hosts = catalogue.hosts.map(h => [h.name, `${h.name} \u00b7 ${h.gpus} \u00d7 ${h.accelerator || "GPU"}`]);
  const groups = [["", hosts]], own = files.filter(f => f.kind === "wiring").map(f => [f.name, f.name]);
  if (own.length) groups.unshift([t("Files"), own]);
  return known(groups, chosen);
}
/// For wiring that does not say which accelerator it has.
export function acceleratorSelect(catalogue, s) {
  return select("accelerator", "Accelerator", [["", [["", t("as the files say")], ...catalogue.accelerators.map(a => [a.name, a.name])]]], s.accelerator);
}
// What a link or a study names and this catalogue does not have stays visible as what it is.
const known = (groups, chosen) => groups.some(g => g[1].some(e => e[0] === chosen)) ? groups : [["", [[chosen, chosen]]], ...groups];

const changed = s => ["network", "nvlink", "latency", "hbm", "host"].filter(k => s[k] !== 1).length;

/// Draws the inputs of a scenario. `on(kind, key)`: kind is "move" or "rest".
export function drawControls(box, s, {catalogue, files, price, what}, on) {
  const jobs = files.filter(f => f.kind === "job"), fromFile = s.job && jobs.some(f => f.name === s.job);
  const jobFile = jobs.length ? select("job", "Job file", [["", [["", t("none: the inputs below")], ...jobs.map(f => [f.name, f.name])]]], s.job) : "";
  const work = fromFile ? `<p class="note">${esc(t("Model, cluster, batch and strategy come from {}; sliders that you move win over it.", s.job))}</p>`
    : select("model", "Model", modelGroups(catalogue, files, s.model), s.model) + select("cluster", "Cluster", clusterGroups(catalogue, files, s.cluster), s.cluster) + (files.some(f => f.name === s.cluster) ? acceleratorSelect(catalogue, s) : "");
  const sizes = what === "wiring" ? "" : ["gpus", "batch", "sequence"].map(k => sliderHtml(k, s)).join("");
  const software = `<div class="pair">${select("precision", "Precision", [["", precisions.map(p => [p, p])]], s.precision)}${select("framework", "Framework", [["", frameworks.map(p => [p, p])]], s.framework)}</div>` +
    `<div class="field"><div class="row">${label("strategy", "Strategy", "f-strategy")}${s.strategy ? `<button type="button" class="link" id="best">${esc(t("find the best"))}</button>` : ""}</div>` +
    `<textarea id="f-strategy" data-key="strategy" rows="2" spellcheck="false" placeholder="${esc(t("the best, searched for"))}">${esc(s.strategy)}</textarea></div>`;
  const n = changed(s);
  const hardware = `<fieldset><legend>${esc(t("What if the hardware were better or worse"))}</legend>${["network", "nvlink", "latency", "hbm", "host"].map(k => sliderHtml(k, s)).join("")}` +
    `<button type="button" class="link" id="plain"${n ? "" : " disabled"}>${esc(t("as it is"))}</button></fieldset>`;
  const money = `<fieldset><legend>${esc(t("Money"))}</legend>${sliderHtml("price", s, price?.usd)}<p class="note" id="price-note">${esc(priceNote(s, price))}</p></fieldset>`;
  box.innerHTML = jobFile + work + sizes + software + hardware + money;
  wire(box, s, on);
}
export const priceNote = (s, price) => s.price ? t("your price") : price ? t("price list of {}: {}", price.date, price.source) : "";

function wire(box, s, say) {
  const on = (kind, key) => { if (!s.moved.includes(key)) s.moved = [...s.moved, key]; say(kind, key); };
  for (const input of box.querySelectorAll("[data-key]")) {
    const key = input.dataset.key, k = sliders[key];
    if (input.type === "range") {
      const values = k.values(s);
      input.oninput = () => {
        s[key] = values[input.value];
        const shown = k.show(s[key]), out = box.querySelector("#o-" + key), exact = box.querySelector("#x-" + key);
        if (out) out.textContent = shown;
        if (exact) exact.value = s[key];
        input.setAttribute("aria-valuetext", shown);
        on("move", key);
      };
      input.onchange = () => on("rest", key);
    } else {
      input.onchange = () => { s[key] = input.value.trim(); on("rest", key); };
    }
  }
  for (const exact of box.querySelectorAll(".exact")) {
    const key = exact.id.slice(2);
    exact.onchange = () => {
      const v = Math.round(Number(exact.value.replace(/[\s,]/g, "")));
      if (!(v >= 1 && v <= 1e9)) { exact.value = s[key]; return; }
      s[key] = v;
      box.querySelector("#f-" + key).value = nearestIndex(sliders[key].values(s), v);
      on("rest", key);
    };
  }
  const best = box.querySelector("#best"), plain = box.querySelector("#plain");
  if (best) best.onclick = () => { s.strategy = ""; on("rest", "strategy"); };
  plain.onclick = () => { for (const k of ["network", "nvlink", "latency", "hbm", "host"]) s[k] = 1; on("rest", "plain"); };
}
