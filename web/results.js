// SPDX-License-Identifier: Apache-2.0
// One scenario's results: asks the service, draws with the scripts of the reports, and keeps up with a moving slider. While
// something moves the last strategy stays and the parts above the fold are drawn; at rest all is planned and drawn anew.
import drawPrediction from "./draw_prediction.js";
import {post, work, Gone, Refused} from "./api.js";
import {esc, times} from "./controls.js";
import {state} from "./state.js";
import {annotate} from "./annotate.js";
import {count, dictionary, reader, t} from "./words.js";

const time = s => !s ? "0 s" : s >= 100 ? count(Math.round(s)) + " s" : s >= 1 ? s.toPrecision(3) + " s" : s >= 1e-3 ? (1e3 * s).toPrecision(3) + " ms" : (1e6 * s).toPrecision(3) + " \u00b5s";
const pct = x => (100 * x).toFixed(1) + " %";
const usd = v => "$" + (v >= 100 ? count(Math.round(v)) : v.toFixed(2));
const gib = b => (b / 2 ** 30).toFixed(1) + " GiB";
export const show = {time, pct, usd, gib};

/// What depends on the job's size is left to be derived, so that the strategy still means something on another one.
export const portable = text => text.split(/\s+/).filter(w => !/^(data|dp|accumulate|gas)=/.test(w)).join(" ");

const hardware = {network: "network", nvlink: "nvlink", latency: "latency", hbm: "hbm", host: "host"};
export const changesOf = s => Object.entries(hardware).filter(([k]) => s[k] !== 1).map(([k, word]) => `${word}=x${s[k]}`);

export const filesOf = kinds => Object.fromEntries(state.files.filter(f => kinds.includes(f.kind)).map(f => [f.name, f.base64 ? {base64: f.base64} : f.text]));

/// The request for a scenario: {job, files, options}.
export function jobRequest(s, price) {
  const options = {lang: reader.lang}, files = filesOf(["job", "model", "wiring"]);
  if (s.job && files[s.job]) {
    const words = {gpus: "gpus", batch: "batch", sequence: "seq", precision: "precision", framework: "framework"};
    for (const [k, word] of Object.entries(words)) if (s.moved.includes(k)) options[word] = s[k];
    return {job: s.job, files, options};
  }
  const job = {model: s.model, cluster: s.cluster, gpus: s.gpus, batch: s.batch, sequence: s.sequence, precision: s.precision, framework: s.framework};
  if (s.accelerator) job.accelerator = s.accelerator;
  const usdPerHour = s.price || price?.usd;
  if (usdPerHour) job.usd_per_accelerator_hour = usdPerHour;
  return {job, files, options};
}

const known = new Map();
/// The price list's figure for a cluster's accelerator, with its date and source; null where it has none.
export async function listPrice(s, signal) {
  const key = s.job ? "job " + s.job : s.cluster + " " + s.accelerator;
  if (known.has(key)) return known.get(key);
  let price = null;
  try {
    const request = jobRequest({...s, price: 0});
    const answer = await post("whatif", {...request, options: {tokens: "1T"}}, signal);
    const money = answer.now?.money;
    if (money) price = {usd: money.usd_per_accelerator_hour, date: money.price_tag.date, source: money.price_tag.source};
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return null;
  }
  known.set(key, price);
  return price;
}

export function errorHtml(error) {
  const e = error.error ?? {message: error.message};
  const at = e.file ? `<code>${esc(e.file)}${e.line ? ":" + e.line : ""}${e.column ? ":" + e.column : ""}</code> ` : "";
  return `<section class="refusal" role="alert"><h2>${esc(t("This cannot be answered as it is"))}</h2><p>${at}${esc(e.message)}</p>${e.fix ? `<p class="fix"><b>${esc(t("What helps"))}:</b> ${esc(e.fix).replace(/\n/g, "<br>")}</p>` : ""}</section>`;
}

const keys = {step: p => p.step_time_s, tokens: p => p.tokens_per_s_per_gpu, mfu: p => p.mfu, memory: p => p.memory.needed_bytes};
/// The figures of a scenario in one row; they stay in sight while the page scrolls.
export function figures(parts) {
  const d = parts?.data, p = d && (d.plan ? d.best : d.prediction);
  if (!p) return null;
  const out = Object.fromEntries(Object.entries(keys).map(([k, of]) => [k, of(p)]));
  return {...out, low: p.step_time_low_s, high: p.step_time_high_s, capacity: p.memory.capacity_bytes, verdict: p.memory.verdict, day: d.usd_per_day ?? 0,
    billion: d.usd_per_billion_tokens ?? 0, strategy: p.strategy, bill: p.bill, gpus: d.job?.gpus ?? 0};
}

const better = {step: -1, tokens: 1, mfu: 1, memory: 0, day: -1, billion: -1};
function delta(key, now, before) {
  if (!before || !(before[key] > 0) || !(now[key] > 0)) return "";
  const r = now[key] / before[key] - 1;
  if (Math.abs(r) < .0005) return "";
  const good = better[key] * r > 0;
  return `<i class="${better[key] ? good ? "good" : "poor" : ""}">${r > 0 ? "+" : "\u2212"}${Math.abs(100 * r).toFixed(Math.abs(r) < .1 ? 1 : 0)} %</i>`;
}
export function stripHtml(now, before) {
  if (!now) return "";
  const cell = (key, value, text, cls = "") => `<div><b class="${cls}">${esc(value)}</b>${delta(key, now, before)}<span>${esc(text)}</span></div>`;
  return cell("step", time(now.step), t("a step; 80 % band {} … {}", time(now.low), time(now.high))) + cell("tokens", count(Math.round(now.tokens)), t("tokens/s per GPU")) + cell("mfu", pct(now.mfu), "MFU") +
    cell("memory", gib(now.memory), t("of {}: {}", gib(now.capacity), t(now.verdict)), {fits: "good", tight: "fair"}[now.verdict] ?? "poor") +
    (now.day ? cell("billion", usd(now.billion), t("per billion tokens")) + cell("day", usd(now.day), t("a day")) : "");
}

/// The first sentence is the heading; what follows stands below it.
function sayVerdict(root, sentence) {
  const text = t(sentence);
  const end = text.search(/\.\s+\p{Lu}/u);
  root.querySelector("h1").textContent = end < 0 ? text : text.slice(0, end + 1);
  root.querySelector(".then").textContent = end < 0 ? "" : text.slice(end + 2);
}

// Places of a result and the sections of the reports' script that stand there.
const places = {ladder: ["ladder"], bill: ["bill"], strategies: ["strategies"], memory: ["memory"], rest: ["timeline", "wiring", "nearest", "ends"]};
const moving = ["ladder", "bill", "memory"];
const inSight = box => { const r = box.getBoundingClientRect(); return r.bottom > 0 && r.top < innerHeight; };

export class Pane {
  constructor(name, hooks) {
    this.name = name; this.hooks = hooks;
    this.root = document.createElement("article");
    this.root.className = "pane";
    this.root.innerHTML = '<div class="busy" hidden></div><h1></h1><p class="then"></p><p class="dim facts"></p><div class="strip"></div><div class="said"></div><div class="parts"><div data-part="ladder"></div><div data-part="bill"></div><div data-part="strategies"></div><div data-part="memory"></div><div data-part="rest"></div></div>';
    this.part = Object.fromEntries([...this.root.querySelectorAll("[data-part]")].map(n => [n.dataset.part, n]));
    this.root.addEventListener("click", e => { const n = e.target.closest("[data-strategy]"); if (n) hooks.strategy(name, n.dataset.strategy); });
    this.root.addEventListener("keydown", e => { if (e.key === "Enter" && e.target.matches("circle[data-strategy]")) hooks.strategy(name, e.target.dataset.strategy); });
    this.want = null; this.running = null; this.since = 0;
  }

  /// `kind`: "move" or "rest". Several asked for while one runs become one.
  request(kind) {
    if (kind === "move" && !this.since) this.since = performance.now();
    // Figures are held against those before this change: a drag is one change, from its first move to its rest.
    if (!this.moving) this.before = this.now;
    this.moving = kind === "move";
    this.want = this.want === "rest" ? "rest" : kind;
    // Most answers come sooner than a cancelled one is cleared away.
    if (this.running === "rest" && performance.now() - this.asked > 400) this.controller.abort();
    this.root.setAttribute("aria-busy", "true");
    return this.pump();
  }

  async pump() {
    if (this.running) return;
    while (this.want) {
      this.running = this.want; this.want = null;
      this.controller = new AbortController();
      this.asked = performance.now();
      const since = this.since; this.since = 0;
      const slow = setTimeout(() => this.busy(true), 250);
      try {
        const parts = await this.ask(this.running, this.controller.signal);
        this.draw(parts, this.running);
        if (this.running === "move" && since) painted(since);
        this.hooks.answered(this.name, this.running);
      } catch (error) {
        this.failed(error);
      }
      clearTimeout(slow); this.busy(false);
      this.running = null;
    }
    this.root.removeAttribute("aria-busy");
  }

  async ask(kind, signal) {
    const s = state[this.name];
    const price = s.price ? null : await listPrice(s, signal);
    const request = jobRequest(s, price), change = changesOf(s);
    if (change.length) request.options.change = change;
    request.options.page = kind === "move" ? "moving" : "whole";
    const keep = kind === "move" && this.strategy, strategy = s.strategy || (keep ? portable(this.strategy) : "");
    if (!strategy) return post("plan", request, signal);
    try {
      return await post("predict", {...request, options: {...request.options, strategy}}, signal);
    } catch (error) {
      // What the kept strategy cannot do on the new size, another may.
      if (!(error instanceof Refused) || s.strategy) throw error;
      return post("plan", {...request, options: {...request.options, page: "whole"}}, signal);
    }
  }

  draw(parts, kind) {
    const now = figures(parts);
    this.parts = parts; this.now = now;
    if (now) this.strategy = now.strategy;
    sayVerdict(this.root, parts.verdict);
    this.root.querySelector(".facts").textContent = parts.facts;
    this.root.querySelector(".strip").innerHTML = stripHtml(now, state.b ? null : this.before);
    this.root.querySelector(".said").innerHTML = "";
    this.root.classList.toggle("stale", kind === "move");
    // What nobody sees is drawn when all is at rest.
    if (kind === "move") { for (const place of moving.filter(p => inSight(this.part[p]))) this.paint(place); return; }
    for (const place of Object.keys(places)) this.paint(place);
    annotate(this.root);
  }
  paint(place) {
    const box = this.part[place];
    box.style.minHeight = box.offsetHeight + "px";  // the page keeps its height while the part is drawn anew
    box.replaceChildren();
    drawPrediction({...this.parts.data, show: places[place], live: true, words: dictionary()}, box);
    box.style.minHeight = "";
  }
  failed(error) {
    if (error.name === "AbortError") return;
    if (error instanceof Gone) { this.want = null; return this.hooks.gone(); }
    if (!(error instanceof Refused)) { this.hooks.broken(error); return; }
    this.root.classList.add("stale");
    this.root.querySelector(".said").innerHTML = errorHtml(error);
    this.hooks.answered(this.name, "refused", error);
  }
  busy(on) {
    const bar = this.root.querySelector(".busy");
    bar.hidden = !on;
    if (on) {
      bar.innerHTML = `<progress></progress><span>${esc(t("computing"))}</span><button type="button">${esc(t("cancel"))}</button>`;
      bar.querySelector("button").onclick = () => { this.want = null; this.controller.abort(); };
    }
  }
}

/// From the slider's event to the frame that shows its result.
function painted(since) {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => performance.measure("slider to repaint", {start: since, end: performance.now()});
    channel.port2.postMessage(0);
  });
}

/// A question that takes long: progress and a way to stop it.
export class Question {
  constructor(hooks) {
    this.hooks = hooks;
    this.root = document.createElement("article");
    this.root.className = "pane";
    this.root.innerHTML = '<div class="busy" hidden></div><h1></h1><p class="then"></p><p class="dim facts"></p><div class="said"></div><div class="parts"><div data-part="all"></div></div>';
  }
  async ask(operation, request, draw) {
    this.controller?.abort();
    this.root.setAttribute("aria-busy", "true");
    const controller = this.controller = new AbortController(), bar = this.root.querySelector(".busy");
    const slow = setTimeout(() => {
      bar.hidden = false;
      bar.innerHTML = `<progress max="1"></progress><span>${esc(t("computing"))}</span><button type="button">${esc(t("cancel"))}</button>`;
      bar.querySelector("progress").removeAttribute("value");
      bar.querySelector("button").onclick = () => controller.abort();
    }, 200);
    const progress = task => {
      const shown = bar.querySelector("progress");
      if (!shown) return;
      if (task.progress > 0) shown.value = task.progress;
      if (task.elapsed_s > 1) bar.querySelector("span").textContent = `${t("computing")}, ${Math.round(task.elapsed_s)} s`;
    };
    try {
      const parts = await work(operation, request, {signal: controller.signal, progress});
      if (controller !== this.controller) return;
      this.parts = parts; this.drawn = draw;
      this.redraw();
      this.hooks.answered(operation, "rest");
    } catch (error) {
      if (controller !== this.controller) return;
      if (error.name === "AbortError") this.say(`<p class="dim">${esc(t("Cancelled. The last result stays."))}</p>`);
      else if (error instanceof Gone) this.hooks.gone();
      else if (error instanceof Refused) { this.say(errorHtml(error)); this.hooks.answered(operation, "refused", error); }
      else this.hooks.broken(error);
    } finally {
      if (controller === this.controller) { clearTimeout(slow); bar.hidden = true; this.root.removeAttribute("aria-busy"); }
      else clearTimeout(slow);
    }
  }
  say(html) { this.root.querySelector(".said").innerHTML = html; }
  redraw() {
    if (!this.parts) return;
    sayVerdict(this.root, this.parts.verdict);
    this.root.querySelector(".facts").textContent = this.parts.facts;
    this.say("");
    const box = this.root.querySelector("[data-part]");
    box.style.minHeight = box.offsetHeight + "px";
    box.replaceChildren();
    this.drawn({...this.parts.data, live: true, words: dictionary()}, box);
    box.style.minHeight = "";
    annotate(this.root);
  }
}

/// What two scenarios differ in, and by how much their results do.
export function comparisonHtml(a, b, sa, sb) {
  if (!a || !b) return "";
  const rows = [["step", t("step time"), time], ["tokens", t("tokens/s per GPU"), v => count(Math.round(v))], ["mfu", "MFU", pct], ["memory", t("memory needed"), gib], ["day", t("money a day"), usd], ["billion", t("money per billion tokens"), usd]];
  const line = ([key, name, f]) => a[key] || b[key] ? `<tr><th scope="row" class="l">${esc(name)}</th><td>${esc(f(a[key]))}</td><td>${esc(f(b[key]))}</td><td>${delta(key, b, a) || "="}</td></tr>` : "";
  const whole = {...a, total: a.tokens * a.gpus}, other = {...b, total: b.tokens * b.gpus};
  const total = `<tr><th scope="row" class="l">${esc(t("tokens/s of the job"))}</th><td>${count(Math.round(whole.total))}</td><td>${count(Math.round(other.total))}</td><td>${a.gpus && b.gpus ? signed(other.total / whole.total - 1) : ""}</td></tr>`;
  const named = {model: t("Model"), cluster: t("Cluster"), accelerator: t("Accelerator"), gpus: t("Accelerators"), batch: t("Batch"), sequence: t("Sequence"), precision: t("Precision"), framework: t("Framework"), strategy: t("Strategy"), network: t("Network between hosts"),
    nvlink: t("Links between GPUs"), latency: t("Latency of collectives"), hbm: t("Device memory bandwidth"), host: t("Speed of the host"), price: t("Price of an accelerator-hour"), job: t("Job file")};
  const value = (k, v) => k in hardware ? times(v) : typeof v === "number" ? count(v) : v || t("the best");
  const differ = Object.keys(named).filter(k => sa[k] !== sb[k]);
  const list = differ.length ? differ.map(k => `<li>${esc(named[k])}: <b>${esc(value(k, sa[k]))}</b> \u2192 <b>${esc(value(k, sb[k]))}</b></li>`).join("") : `<li>${esc(t("Nothing yet: change something in one of them."))}</li>`;
  return `<section class="compare"><h2>${esc(t("A beside B"))}</h2><div class="two"><div><h3>${esc(t("What differs"))}</h3><ul class="plain">${list}</ul></div><div class="scroll" tabindex="0"><table><thead><tr><th scope="col" class="l">${esc(t("result"))}</th><th scope="col">A</th><th scope="col">B</th><th scope="col">${esc(t("B against A"))}</th></tr></thead><tbody>${rows.slice(0, 2).map(line).join("")}${total}${rows.slice(2).map(line).join("")}<tr><th scope="row" class="l">${esc(t("strategy"))}</th><td class="wrap">${esc(a.strategy)}</td><td class="wrap">${esc(b.strategy)}</td><td></td></tr></tbody></table></div></div></section>`;
}
const signed = r => Math.abs(r) < .0005 ? "=" : `<i class="${r > 0 ? "good" : "poor"}">${r > 0 ? "+" : "\u2212"}${Math.abs(100 * r).toFixed(Math.abs(r) < .1 ? 1 : 0)} %</i>`;
