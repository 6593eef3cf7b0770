// SPDX-License-Identifier: Apache-2.0
// One predicted step, or a plan with its best strategy on top: ladder, bill, choke points, memory, pipeline, wiring.
const P = D.plan ? D.best : D.prediction;
const days = D.usd_per_day, perDay = share => days ? T("{} a day", usd(share * days)) : "";

function ladderSection() {
  const box = section("From peak to useful work", days ? T("Every step down has a reason and a price: what the job costs is {} a day.", usd(days)) : T("Every step down has a reason. Per cent of the summed peak, {}.", D.peak));
  const rungs = P.ladder, ideal = P.step_time_s * rungs[rungs.length - 1].fraction;
  let before = 1;
  const rows = [];
  rungs.forEach((r, i) => {
    const lost = before - r.fraction, seconds = ideal / r.fraction - ideal / before;
    if (i > 0 && lost < .0005) return;
    const words = i === 0 ? T("peak") + " " + D.peak : T(r.name);
    const tipText = i === 0 ? `<b>${esc(words)}</b><br>${esc(T("the step would take {}", time(ideal)))}` : `<b>${esc(words)}</b><br>${esc(T("{} of the peak is left", pct(r.fraction)))}<br>${esc(T("{} points lost here, {} of the step", (100 * lost).toFixed(1), time(seconds)))}${days ? "<br>" + esc(perDay(seconds / P.step_time_s)) : ""}`;
    rows.push({label: words, strong: i === rungs.length - 1, notes: [pct(r.fraction), i === 0 ? "" : minus + (100 * lost).toFixed(1), i === 0 ? "" : time(seconds)].concat(days ? [i === 0 ? "" : perDay(seconds / P.step_time_s)] : []),
      parts: [{from: 0, to: r.fraction, colour: "var(--a)", tip: tipText}, {from: r.fraction, to: before, colour: "var(--poor)", faint: .55, tip: tipText}]});
    before = r.fraction;
  });
  rows.push({label: T("useful work (MFU)"), strong: true, notes: [pct(before), "", time(ideal)].concat(days ? [perDay(before)] : []), parts: [{from: 0, to: before, colour: "var(--good)", tip: `<b>${esc(T("useful work (MFU)"))}</b><br>${esc(T("{} of the step, {} per GPU", time(ideal), D.per_gpu))}`}]});
  rows.slice(0, -1).forEach(r => { r.strong = false; });
  figure(box, T("From peak to useful work"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: 1, heads: [T("left"), T("lost"), T("of the step")].concat(days ? [T("money")] : [])}));
}

function billSection(parent) {
  const box = section("Bill of the step", T("The classes sum to the step time. What a class hides behind another one is not on the bill."), parent);
  const items = Object.entries(P.bill).filter(b => b[1] > 0).map(([k, v]) => ({label: T(billName[k]), value: v, note: time(v), colour: billColour[k], tip: `<b>${esc(T(billName[k]))}</b><br>${time(v)}, ${pct(v / P.step_time_s)}${days ? "<br>" + esc(perDay(v / P.step_time_s)) : ""}`}));
  waterfall(box, T("Bill of the step"), items.map(i => i.label + " " + i.note).join(", "), items, {label: T("step"), value: P.step_time_s, note: time(P.step_time_s), parts: stack(items)});
}

function chokeSection(parent) {
  const box = section("Choke points", T("Step time if this one resource were better, everything else as it is; an attainable value, not an ideal one."), parent);
  if (!P.choke_points.length) return el(`<p>${esc(T("None stands out: no single better resource shortens the step by more than 0.2 %."))}</p>`, box);
  const rows = P.choke_points.map((c, i) => ({label: T(c.where), strong: i === 0, notes: [time(c.step_time_if_ideal_s), spct(c.step_time_if_ideal_s / P.step_time_s - 1)],
    parts: [{from: 0, to: c.step_time_if_ideal_s, colour: "var(--a)", tip: `<b>${esc(T(c.where))}</b><br>${esc(T("with {}", T(c.change)))}: ${time(c.step_time_if_ideal_s)}${days ? "<br>" + esc(T("{} less", perDay(1 - c.step_time_if_ideal_s / P.step_time_s))) : ""}`},
      {from: c.step_time_if_ideal_s, to: P.step_time_s, colour: "var(--poor)", faint: .35}]}));
  figure(box, T("Choke points"), rows.map(r => r.label + " " + r.notes.join(" ")).join(", "), W => barRows(W, rows, {hi: P.step_time_s * 1.001, ticks: time, label: W * .42, lines: [{at: P.step_time_s, label: T("as it is: {}", time(P.step_time_s)), cls: "lim"}]}));
  list(P.choke_points.slice(0, 4).map(c => T(c.where) + ": " + T("with {}", T(c.change))), box);
}

function memorySection(parent) {
  const M = P.memory, stages = D.memory_stages;
  const word = {fits: "good", tight: "fair"}[M.verdict] ?? "poor";
  const box = section("Memory", "", parent);
  el(`<p><b class="${word}">${esc(T(M.verdict))}</b>: ${esc(T("{} needed of {} usable", gib(M.needed_bytes), gib(M.capacity_bytes)))}${stages.length > 1 ? esc(T(", stage {} is the fullest", M.stage)) : ""}</p>`, box);
  const totals = {};
  stages.forEach(s => Object.entries(s.parts).forEach(([k, v]) => { totals[k] = Math.max(totals[k] ?? 0, v); }));
  const names = Object.keys(totals).filter(k => totals[k] >= 1e6), colour = Object.fromEntries(names.map((n, i) => [n, palette[i % palette.length]]));
  const rows = stages.map(s => ({label: stages.length > 1 ? T("stage {}", s.stage) : T("each rank"), notes: [gib(s.needed_bytes)], strong: s.needed_bytes > M.capacity_bytes,
    parts: stack(names.map(n => ({value: s.parts[n] ?? 0, colour: colour[n], tip: `<b>${esc(T(n))}</b><br>${gib(s.parts[n] ?? 0)}${stages.length > 1 ? ", " + esc(T("stage {}", s.stage)) : ""}`})))}));
  // In GiB, so that the scale has round steps.
  const G = 2 ** 30, hi = Math.max(M.capacity_bytes, ...stages.map(s => Math.max(s.needed_bytes, sum(Object.values(s.parts))))) / G * 1.04;
  rows.forEach(r => r.parts.forEach(p => { p.from /= G; p.to /= G; }));
  figure(box, T("Memory by part and stage"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi, ticks: v => v + " GiB", row: stages.length > 12 ? 20 : 28, heads: [T("needed")], lines: [{at: M.capacity_bytes / G, label: T("capacity {}", gib(M.capacity_bytes))}]}));
  el(legend(names.map(n => [T(n) + " " + gib(totals[n]), colour[n]])), box);
}

// Passes of the pipeline's stages over time, as the event engine runs them.
function timelineSection() {
  const line = D.timeline;
  if (!line || line.lanes.length < 2) return;
  const box = section("Pipeline", line.whole ? T("One step, run event by event: {}. Figures are micro-batches.", time(line.step_s)) : T("The first {} of a step of {}, run event by event. Figures are micro-batches.", time(line.span_s), time(line.step_s)));
  const kinds = {forward: "#2f7ec4", backward: "#2f9e5f", recompute: "#86b4de", weight: "#9a971f", communication: "#d98324", optimizer: "#8c62c4"};
  const rows = line.lanes.map(l => ({label: T("stage {}", l.stage), notes: [pct(Math.min(1, sum(l.spans.map(s => s.end_s - s.start_s)) / line.span_s))],
    parts: l.spans.map(s => ({from: s.start_s, to: s.end_s, colour: kinds[s.kind] ?? "var(--c)", faint: 1 - .14 * (s.chunk % 4), text: s.label, tip: `<b>${esc(T("stage {}", l.stage))}</b><br>${esc(T(s.kind))} ${esc(s.label ?? "")}<br>${time(s.start_s)} \u2026 ${time(s.end_s)}: ${time(s.end_s - s.start_s)}`}))}));
  figure(box, T("Pipeline"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: line.span_s, ticks: time, heads: [T("busy")], row: 30}), 620);
  el(legend(Object.entries(kinds).filter(k => line.lanes.some(l => l.spans.some(s => s.kind === k[0]))).map(([k, c]) => [T(k), c])), box);
}

function wiringSection() {
  if (!D.svg) return;
  const c = P.choke_points.find(k => ["nvlink", "pcie", "nic", "network", "fabric"].includes(k.kind));
  const box = section("Wiring", c ? T("Of the wires, {} limit this job most; they are drawn in red.", T(c.where)) : T("No wire limits this job noticeably."));
  const select = {nvlink: ".nvlink,.gpulink,.nvswitch", pcie: ".pcie", nic: ".nic", network: ".nic", fabric: ".nic"}[c?.kind];
  wiringMap(box, D.svg, select ? [{select, cls: "hot", tip: `<b>${esc(T(c.where))}</b><br>${esc(T("with {}", T(c.change)))}: ${time(c.step_time_if_ideal_s)}`}] : []);
}

function nearestSection() {
  const near = D.nearest_runs ?? [];
  if (!near.length) return;
  const box = section("Nearest published runs", T("As their sources print them; the prediction does not read them."));
  const rows = [{label: T("this prediction"), strong: true, notes: [pct(P.mfu)], parts: [{from: 0, to: P.mfu, colour: "var(--a)", tip: esc(T("this prediction")) + " " + pct(P.mfu)}]}]
    .concat(near.map(r => ({label: `${r.model}, ${r.gpus} \u00d7 ${r.accelerator}`, notes: [pct(r.mfu)], parts: [{from: 0, to: r.mfu, colour: "var(--c)", tip: `<b>${esc(r.model)}</b>, ${r.gpus} \u00d7 ${esc(r.accelerator)}, ${esc(r.framework)} ${esc(r.precision)}<br>${esc(r.strategy)}<br>${esc(r.reached)}<br>${esc(r.source)}`}]})));
  figure(box, T("MFU beside published runs"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: Math.max(...near.map(r => r.mfu), P.mfu) * 1.05, ticks: v => pct(v), heads: ["MFU"]}));
  list(near.map(r => `${r.model}: ${r.differences.join(", ") || T("much the same")}; ${r.reached}. ${r.source}${r.date ? ` (${r.date})` : ""}`), box);
}

function planSections() {
  const all = D.every, best = D.candidates[0];
  const box = section("Strategies", T("{} legal, {} timed, bounds exclude the rest; each point is one of the best. = : cannot be told apart from the best.", D.space.enumerated.toLocaleString("en-US"), D.space.evaluated.toLocaleString("en-US")));
  const limit = 3 * best.step_time_s, shown = all.filter(s => s.step_time_s <= limit), c = colours(shown, "kind");
  // The accelerators and the batch are the same for all, so money is the step time in another unit.
  const moneyAt = s => D.usd_per_billion_tokens / best.step_time_s * s;
  if (shown.length > 1) {
    scatter(box, days ? T("Step time and money against memory") : T("Step time against memory"), T("Strategies by memory needed and step time; the best is {}", best.title), () => shown.map(s => ({x: s.needed_bytes / 2 ** 30, y: s.step_time_s, colour: c.of(s), big: s.strategy === best.strategy ? 4 : 0, strategy: D.live && s.strategy, tip: `<b>${esc(s.title)}</b><br>${time(s.step_time_s)}, ${gib(s.needed_bytes)}, MFU ${pct(s.mfu)}${days ? `<br>${usd(moneyAt(s.step_time_s))} ${esc(T("per billion tokens"))}` : ""}`})),
      {id: "plan", fx: v => v + " GiB", fy: time, x: T("memory needed per GPU"), y: T("step time"), r: 3.6, right: days && {format: t => usd(moneyAt(t)), label: T("money per billion tokens")}, ax: axis([0, D.capacity_bytes / 2 ** 30 * 1.02], false),
        extra: (X, Y, ax, ay, f) => `<line class="cap" x1="${X(D.capacity_bytes / 2 ** 30)}" x2="${X(D.capacity_bytes / 2 ** 30)}" y1="${f.top}" y2="${f.bottom}"/>`});
    el(legend(c.entries.map(([n, k]) => [T(n), k]).concat([[T("capacity"), "var(--poor)"]])), box);
    if (shown.length < all.length) el(`<p class="dim">${esc(T("{} slower than three times the best are not drawn.", all.length - shown.length))}</p>`, box);
  }
  const rows = D.candidates.map((s, i) => ({...s, n: i + 1}));
  sortable(box, [{name: "#", key: "n", show: (v, r) => v + (r.tied ? " =" : "")}, {name: T("strategy"), key: "title", left: true, show: (v, r) => `${r.n === 1 ? "<b>" : ""}${D.live ? `<button type="button" class="link" data-strategy="${esc(r.strategy)}">${esc(v)}</button>` : esc(v)}${r.n === 1 ? "</b>" : ""}`},
    {name: T("step"), key: "step_time_s", show: time}, {name: T("80 % band"), get: r => r.step_time_high_s, show: (v, r) => time(r.step_time_low_s) + " \u2026 " + time(v)}, {name: T("tokens/s per GPU"), key: "tokens_per_s_per_gpu", show: v => Math.round(v).toLocaleString("en-US")},
    {name: "MFU", key: "mfu", show: pct}, {name: T("memory"), get: r => r.memory.needed_bytes, show: gib}].concat(days ? [{name: T("money per billion tokens"), get: r => r.usd_per_billion_tokens, show: usd}] : []), rows, {keep: true});
  if (D.why_not.length) {
    const why = section("Why the others lost");
    const timed = D.why_not.filter(w => w.step_time_s);
    if (timed.length) figure(why, T("Step time of each kind of strategy at its best"), timed.map(w => w.title + " " + time(w.step_time_s)).join(", "), W => barRows(W, [{label: best.title, strong: true, notes: ["1.00\u00d7", time(best.step_time_s)], parts: [{from: 0, to: best.step_time_s, colour: "var(--good)", tip: esc(best.title)}]}].concat(timed.map(w => ({label: w.title, notes: [(w.step_time_s / best.step_time_s).toFixed(2) + "\u00d7", time(w.step_time_s)], parts: [{from: 0, to: best.step_time_s, colour: "var(--a)", tip: esc(w.title)}, {from: best.step_time_s, to: w.step_time_s, colour: "var(--poor)", faint: .6, tip: `<b>${esc(w.title)}</b><br>${esc(T(w.reason))}`}]}))), {hi: Math.max(...timed.map(w => w.step_time_s)), ticks: time, label: W * .45}));
    list(D.why_not.map(w => (w.title ?? w.family) + ": " + T(w.reason)), why);
  }
}

function endSections() {
  const box = el('<div class="two cards"></div>');
  const a = section("Assumptions", "", box), s = section("Sources", "", box);
  P.assumptions.length ? list(P.assumptions.map(x => T(x)), a) : el(`<p>${esc(T("Nothing was assumed."))}</p>`, a);
  list(D.sources ?? [], s);
}

function measuredSection() {
  const box = section("Measured"), m = D.measured;
  const hi = Math.max(m.measured_step_time_s, P.step_time_high_s);
  figure(box, T("Measured"), T("measured {}, predicted {}", time(m.measured_step_time_s), time(P.step_time_s)), W => barRows(W, [{label: T("measured"), strong: true, notes: [time(m.measured_step_time_s)], parts: [{from: 0, to: m.measured_step_time_s, colour: "var(--b)", tip: time(m.measured_step_time_s)}]}, {label: T("predicted"), notes: [time(P.step_time_s)], parts: [{from: 0, to: P.step_time_s, colour: "var(--a)", tip: `${time(P.step_time_s)}<br>${esc(T("80 % band"))} ${time(P.step_time_low_s)} \u2026 ${time(P.step_time_high_s)}`}, {from: P.step_time_s, to: P.step_time_high_s, colour: "var(--a)", faint: .3}]}], {hi, ticks: time}));
  el(`<p>${esc(T(m.suspect))}</p>`, box);
}
function tilesSection() {
  tiles([[time(P.step_time_s), T("a step; 80 % band {} … {}", time(P.step_time_low_s), time(P.step_time_high_s))], [Math.round(P.tokens_per_s_per_gpu).toLocaleString("en-US"), T("tokens/s per GPU")], [pct(P.mfu), T("MFU; HFU {}", pct(P.hfu))], [gib(P.memory.needed_bytes), T("memory needed of {}: {}", gib(P.memory.capacity_bytes), T(P.memory.verdict)), {fits: "good", tight: "fair"}[P.memory.verdict] ?? "poor"],
    days && [usd(days), T("a day; {} per billion tokens", usd(D.usd_per_billion_tokens))]]);
}
function billAndChoke() {
  const pair = el('<div class="two cards"></div>');
  billSection(pair);
  chokeSection(pair);
}
function wouldFitSection() {
  const box = section("It would fit with");
  list(D.would_fit.map(x => T(x)), box);
}
// In this order; D.show names some of them, for a page that draws one part oftener than another.
const parts = {
  ladder: () => P?.ladder.length && ladderSection(), tiles: () => P && tilesSection(), measured: () => P && D.measured && measuredSection(), bill: () => P && billAndChoke(),
  strategies: () => D.plan && (D.candidates.length ? planSections() : wouldFitSection()), memory: () => P && memorySection(), timeline: () => P && timelineSection(),
  wiring: () => P && wiringSection(), nearest: () => P && nearestSection(), ends: () => P && endSections(),
};
for (const [name, draw] of Object.entries(parts)) if (!D.show || D.show.includes(name)) draw();
