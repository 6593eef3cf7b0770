// SPDX-License-Identifier: Apache-2.0
// Files dropped on the page: read here, told apart by their content, sent with the requests that use them.
import {esc} from "./controls.js";
import {state} from "./state.js";
import {t} from "./words.js";

export const kinds = {job: "job or framework config", model: "model (config.json)", wiring: "wiring", trace: "trace or log"};
/// What the service takes in one request is 64 MiB, and base64 grows by a third.
export const largest = 45 * 2 ** 20;

/// A guess from the content; the reader may say otherwise. Archives and databases are traces.
export function kindOf(name, text) {
  if (text === null) return "trace";
  const head = text.slice(0, 200000);
  if (/"traceEvents"|"ph"\s*:|"pg_config"|"Trace Events"|"entries"\s*:\s*\[/.test(head)) return "trace";
  if (/<system|<topology|<cpu numaid/.test(head) || /GPU0\s+GPU1|Affinity|vendid=|^Switch\s+\d+ "|NCCL INFO|Link width|LnkSta|out-of-place/m.test(head)) return "wiring";
  if (/"(model_type|hidden_size|n_embd|num_hidden_layers|architectures)"\s*:/.test(head) && !/"train_batch_size"|"zero_optimization"/.test(head)) return "model";
  if (/^\s*(hosts|fabric|wiring)\s*:/m.test(head) && !/^\s*model\s*:/m.test(head)) return "wiring";
  if (/iteration\s+\d+\/|elapsed time per iteration|step:?\s*\d+.*loss|step_id|op_type/i.test(head)) return "trace";
  return "job";
}

const toBase64 = async file => new Promise((done, stop) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.onerror = () => stop(reader.error);
  reader.readAsDataURL(file);
});

/// Files as {name, kind, size, text | base64}; a saved state of this page is handed to `open` instead.
export async function take(list, {open, refuse}) {
  for (const file of list) {
    if (file.size > largest) { refuse(t("{} is larger than {} MiB; give it to the command line instead", file.name, largest / 2 ** 20)); continue; }
    let text = null;
    const bytes = new Uint8Array(await file.slice(0, 4096).arrayBuffer());
    if (!bytes.includes(0) && !(bytes[0] === 0x1f && bytes[1] === 0x8b) && !(bytes[0] === 0x28 && bytes[1] === 0xb5)) text = await file.text();
    if (text !== null && text.startsWith("{") && text.includes('"chokepoint-page"')) {
      try { open(JSON.parse(text)); continue; } catch { /* damaged: taken as a file like any other, and the service says what is wrong */ }
    }
    const entry = {name: file.name, size: file.size, kind: kindOf(file.name, text)};
    if (text !== null) entry.text = text; else entry.base64 = await toBase64(file);
    state.files = [...state.files.filter(f => f.name !== file.name), entry];
    adopt(entry);
  }
}

/// A file is used at once where it belongs, and the page goes there.
function adopt(file) {
  const s = state[state.active];
  if (file.kind === "job") { s.job = file.name; s.moved = []; if (state.tab !== "whatif") state.tab = "plan"; }
  else if (file.kind === "model") s.model = file.name;
  else if (file.kind === "wiring") { s.cluster = file.name; state.tab = "wiring"; state.wiring.expect = ""; }
  else state.tab = "diagnose";
}

const size = b => b >= 2 ** 20 ? (b / 2 ** 20).toFixed(1) + " MiB" : Math.max(1, Math.round(b / 1024)) + " KiB";

export function drawFiles(box, changed) {
  const rows = state.files.map((f, i) => `<li><span class="name" title="${esc(f.name)}">${esc(f.name)}</span><small>${size(f.size)}</small><select data-i="${i}" aria-label="${esc(t("{} is", f.name))}">` +
    Object.entries(kinds).map(([k, v]) => `<option value="${k}"${k === f.kind ? " selected" : ""}>${esc(t(v))}</option>`).join("") + `</select><button type="button" data-i="${i}" aria-label="${esc(t("remove {}", f.name))}">\u00d7</button></li>`).join("");
  box.innerHTML = `<div class="files"><label class="drop-here" for="pick">${esc(t("Drop files here, or choose them"))}<small>${esc(t("wiring, job or framework config, config.json, traces, a saved page"))}</small></label><input id="pick" type="file" multiple class="visually-hidden">${rows ? `<ul>${rows}</ul>` : ""}</div>`;
  box.querySelector("#pick").onchange = e => changed([...e.target.files]);
  for (const n of box.querySelectorAll("select[data-i]")) n.onchange = () => { state.files[n.dataset.i].kind = n.value; adopt(state.files[n.dataset.i]); changed(); };
  for (const n of box.querySelectorAll("button[data-i]")) n.onclick = () => { forget(state.files[n.dataset.i].name); changed(); };
}
function forget(name) {
  state.files = state.files.filter(f => f.name !== name);
  for (const s of [state.a, state.b]) {
    if (!s) continue;
    if (s.job === name) s.job = "";
    if (s.cluster === name) { s.cluster = "dgx-h100"; s.accelerator = ""; }
    if (s.model === name) s.model = "llama-3-70b";
  }
}
