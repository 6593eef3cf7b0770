// SPDX-License-Identifier: Apache-2.0
// Questions of the tab "What if": changes, sizes, a run's length and deadline.
import {esc} from "./controls.js";
import {state} from "./state.js";
import {t} from "./words.js";

const examples = ["nic=400 Gb/s", "nic=x2", "nics-per-host=8", "network=x2", "fabric=rail-optimised", "oversubscription=1", "nvlink=x2", "nvlink-domain=72", "pcie=5", "gpudirect=on", "latency=x0.5", "accelerator=h200-sxm-141gb",
  "hbm=x1.5", "memory=141 GB", "clock=x0.9", "host=x2", "gpus=2048", "batch=2048", "accumulate=16", "precision=fp8", "compiled=on", "recompute=full", "zero=3", "fsdp", "mend=links", "bridges=on"];

export function drawWhatIfInputs(box, s, changed) {
  const w = state.whatif;
  const check = (key, name) => `<label class="check"><input type="checkbox" id="w-${key}"${w[key] ? " checked" : ""}>${esc(t(name))}</label>`;
  const text = (key, name, hint) => `<div class="field"><div class="row"><label for="w-${key}">${esc(t(name))}</label></div><input id="w-${key}" value="${esc(w[key])}" placeholder="${esc(hint)}"></div>`;
  box.innerHTML = `<fieldset><legend>${esc(t("Questions"))}</legend><div class="field"><div class="row"><label for="w-change">${esc(t("Change"))}</label></div><div class="row"><input id="w-change" list="change-words" placeholder="nic=400 Gb/s"><button type="button" id="w-add">${esc(t("add"))}</button></div>` +
    `<datalist id="change-words">${examples.map(e => `<option value="${esc(e)}">`).join("")}</datalist>` +
    `<ul class="chips">${w.changes.map((c, i) => `<li><code>${esc(c)}</code><button type="button" data-i="${i}" aria-label="${esc(t("remove {}", c))}">\u00d7</button></li>`).join("")}</ul></div>` +
    check("sensitivities", "What the step hangs on") + check("breakEven", "Break-even points") + text("scale", "Sizes to go through", "8..16384") + check("grow", "The batch grows with them") + `<div class="pair">${text("tokens", "Tokens of the run", "15T")}${text("by", "Deadline", "30d")}</div></fieldset>`;
  const add = () => {
    const given = box.querySelector("#w-change").value.trim();
    if (!given) return;
    w.changes = [...w.changes, given];
    redraw();
  };
  const redraw = () => { drawWhatIfInputs(box, s, changed); changed(); };
  box.querySelector("#w-add").onclick = add;
  box.querySelector("#w-change").onkeydown = e => { if (e.key === "Enter") { e.preventDefault(); add(); box.querySelector("#w-change").focus(); } };
  for (const b of box.querySelectorAll(".chips button")) b.onclick = () => { w.changes = w.changes.filter((_, i) => i !== +b.dataset.i); redraw(); };
  for (const key of ["sensitivities", "breakEven", "grow"]) box.querySelector("#w-" + key).onchange = e => { w[key] = e.target.checked; changed(); };
  for (const key of ["scale", "tokens", "by"]) box.querySelector("#w-" + key).onchange = e => { w[key] = e.target.value.trim(); changed(); };
}

/// Sliders away from where they start are changes too.
export function whatIfOptions(s, sliders) {
  const w = state.whatif, change = [...sliders, ...w.changes], out = {};
  if (change.length) out.change = change;
  if (change.length > 1) out.each = true;
  if (w.sensitivities) out.sensitivities = true;
  if (w.breakEven) out["break-even"] = true;
  if (w.scale) out.scale = w.scale;
  if (w.scale && w.grow) out["grow-batch"] = true;
  if (w.tokens) out.tokens = w.tokens;
  if (w.tokens && w.by) out.by = w.by;
  return out;
}
