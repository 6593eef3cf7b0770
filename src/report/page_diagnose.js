// SPDX-License-Identifier: Apache-2.0
// A diagnosis: traces of ranks, a timeline of a pipelined job (stragglers), flight recorder dumps (hang), or a trainer's log.
const seconds = s => D.log && !D.log.seconds_known ? T("{} of the median", s.toFixed(3)) : time(s);
const names = Object.keys(billColour);
const causeColour = i => palette[(i + 1) % palette.length];

function causesSection() {
  if (!D.causes.length || !(D.measured_s > 0)) return;
  const box = section("From measured to ideal", T("Each cause with its share of the gap; the shares sum to it. A cause without which the step would take as long costs nothing."));
  let at = D.measured_s;
  const shown = D.causes.filter(c => Math.abs(c.cost_s) >= .001 * D.measured_s), rest = sum(D.causes.map(c => c.cost_s)) - sum(shown.map(c => c.cost_s));
  const rows = [{label: T("measured"), strong: true, notes: [seconds(D.measured_s), ""], parts: [{from: 0, to: D.measured_s, colour: "var(--b)", tip: `<b>${esc(T("measured"))}</b> ${seconds(D.measured_s)}`}]}];
  const step = (label, cost, colour, tipText) => { const to = at - cost; rows.push({label, notes: [(cost < 0 ? "+" : minus) + seconds(Math.abs(cost)), pct(cost / D.measured_s)], parts: [{from: Math.min(at, to), to: Math.max(at, to), colour, tip: tipText}]}); at = to; };
  shown.forEach((c, i) => step(c.where ? `${T(c.id)}: ${c.where}` : T(c.id), c.cost_s, causeColour(i), `<b>${esc(c.what)}</b><br>${esc(T("costs {}; without it alone the step takes {}", seconds(c.cost_s), seconds(c.step_time_without_s)))}${c.remedy ? "<br>" + esc(c.remedy) : ""}`));
  if (Math.abs(rest) >= 1e-4 * D.measured_s) step(T("smaller causes"), rest, "var(--c)", esc(T("smaller causes")));
  rows.push({label: T("ideal"), strong: true, notes: [seconds(D.ideal_s), pct(D.ideal_s / D.measured_s)], parts: [{from: 0, to: D.ideal_s, colour: "var(--good)", tip: `<b>${esc(T("ideal"))}</b> ${seconds(D.ideal_s)}`}]});
  figure(box, T("From measured to ideal"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: Math.max(D.measured_s, D.ideal_s), ticks: seconds, track: false, heads: [T("time"), T("of the step")]}));
  sortable(box, [{name: T("cause"), key: "what", left: true, wrap: true, show: v => esc(v)}, {name: T("costs"), key: "cost_s", show: seconds}, {name: T("step without it"), key: "step_time_without_s", show: seconds}, {name: T("what helps"), key: "remedy", left: true, wrap: true, show: v => esc(v)}], D.causes.filter(c => c.what), {keep: true});
}

// Shares of the ranks' time that are left after each kind of loss.
function ladderSection() {
  const total = sum(D.ranks.map(r => sum(names.map(n => r.bill[n] ?? 0))));
  if (!(total > 0)) return;
  const of = pick => sum(D.ranks.map(pick)) / total, waits = of(r => sum(Object.values(r.wait)));
  const lossOf = n => of(r => (r.bill[n] ?? 0) - (r.wait[n] ?? 0));
  const losses = [["waiting for other ranks", waits, "var(--poor)"], ["bubble", lossOf("bubble"), billColour.bubble], ["host and launch", lossOf("host"), billColour.host]]
    .concat(["tensor", "context", "expert", "pipeline", "data-gather", "data-reduce"].map(n => [billName[n] + ": wire", lossOf(n), billColour[n]]))
    .concat([["memory copies", lossOf("offload"), billColour.offload], ["other idle time", lossOf("other"), billColour.other], ["optimizer", lossOf("optimizer"), billColour.optimizer], ["recompute", lossOf("recompute"), billColour.recompute]]);
  const box = section("From device time to useful work", T("All ranks together: what is left of their time after each loss."));
  let left = 1;
  const rows = [{label: T("device time"), notes: ["100.0 %", "", time(total / D.ranks.length)], parts: [{from: 0, to: 1, colour: "var(--a)", tip: esc(T("device time"))}]}];
  for (const [name, loss, colour] of losses) {
    if (loss < .0005) continue;
    const before = left; left -= loss;
    const tipText = `<b>${esc(T(name))}</b><br>${esc(T("{} of the time, {} per rank", pct(loss), time(loss * total / D.ranks.length)))}`;
    rows.push({label: T(name), notes: [pct(left), minus + (100 * loss).toFixed(1), time(loss * total / D.ranks.length)], parts: [{from: 0, to: left, colour: "var(--a)", tip: tipText}, {from: left, to: before, colour, tip: tipText}]});
  }
  rows.push({label: T("computing"), strong: true, notes: [pct(left), "", time(left * total / D.ranks.length)], parts: [{from: 0, to: left, colour: "var(--good)", tip: esc(T("computing"))}]});
  figure(box, T("From device time to useful work"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: 1, heads: [T("left"), T("lost"), T("per rank")]}));
}

const rankParts = r => stack(names.flatMap(n => {
  const all = r.bill[n] ?? 0, wait = r.wait[n] ?? 0, label = T(n === "offload" ? "memory copies" : billName[n]);
  const tipText = `<b>${esc(T("rank {}", r.rank))}</b><br>${esc(label)}: ${time(all)}${wait ? `<br>${esc(T("wire {}, wait {}", time(all - wait), time(wait)))}` : ""}`;
  return [{value: all - wait, colour: billColour[n], tip: tipText}, {value: wait, colour: billColour[n], hatch: true, tip: tipText}];
}));
const present = () => names.filter(n => D.ranks.some(r => (r.bill[n] ?? 0) > 0));

function ranksSection() {
  if (!D.ranks.length || !D.ranks.some(r => r.span_s > 0)) return;
  const most = 64, shown = D.ranks.length <= most ? D.ranks : [...D.ranks].sort((a, b) => b.span_s - a.span_s).slice(0, most).sort((a, b) => a.rank - b.rank);
  const box = section("Bill of every rank", D.ranks.length > most ? T("The {} ranks with the longest time of {}.", most, D.ranks.length) : "");
  const rows = shown.map(r => ({label: T("rank {}", r.rank), notes: [time(r.span_s)], parts: rankParts(r)}));
  figure(box, T("Bill of every rank"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: Math.max(...shown.map(r => r.span_s)), ticks: time, row: shown.length > 16 ? 20 : 28}));
  el(legend(present().map(n => [T(n === "offload" ? "memory copies" : billName[n]), billColour[n]]), T("hatched: waiting for a peer")), box);
  if (D.ranks.length > 1) {
    el(`<h3>${esc(T("Ranks side by side"))}</h3>`, box);
    const classes = present(), drawn = D.ranks.slice(0, 512), share = (r, n) => (r.bill[n] ?? 0) / Math.max(1e-12, r.span_s);
    const tops = classes.map(n => Math.max(...drawn.map(r => share(r, n))));
    figure(box, T("Ranks side by side"), T("Share of each class in each rank's time"), W => heat(W, drawn.map(r => T("rank {}", r.rank)), classes.map(n => T(n)), (i, j) => {
      const v = share(drawn[i], classes[j]);
      return {value: tops[j] ? v / tops[j] : 0, colour: billColour[classes[j]], text: pct(v), tip: `<b>${esc(T("rank {}", drawn[i].rank))}</b><br>${esc(T(classes[j]))}: ${pct(v)}, ${time(drawn[i].bill[classes[j]] ?? 0)}`};
    }, {widest: 120, row: drawn.length > 40 ? 10 : 22}));
  }
  const steps = Math.max(0, ...D.ranks.map(r => (r.step_wall_s ?? []).length));
  if (steps > 1) {
    el(`<h3>${esc(T("Steps of every rank"))}</h3>`, box);
    const all = D.ranks.flatMap(r => r.step_wall_s), low = Math.min(...all), high = Math.max(...all), label = i => D.ranks.map(r => r.step_names[i]).find(n => n) ?? String(i);
    figure(box, T("Steps of every rank"), T("Step times from {} to {}", time(low), time(high)), W => heat(W, D.ranks.map(r => T("rank {}", r.rank)), Array.from({length: steps}, (_, i) => label(i)), (i, j) => {
      const v = D.ranks[i].step_wall_s[j];
      return v === undefined ? null : {value: high > low ? (v - low) / (high - low) : 0, colour: "var(--b)", text: time(v), tip: `<b>${esc(T("rank {}", D.ranks[i].rank))}, ${esc(label(j))}</b><br>${time(v)}`};
    }, {widest: 110, row: D.ranks.length > 40 ? 10 : 22}));
  }
}

function collectivesSection() {
  const groups = D.collective_groups ?? [];
  if (!groups.length) return;
  const box = section("Collectives", T("Wire: from the last rank's start to the first end. Wait: until the last rank came."));
  const points = D.collectives.filter(c => c.bytes > 0 && c.bus_bytes_per_s), ops = [...new Set(points.map(c => c.op ?? "?"))], colour = o => palette[ops.indexOf(o) % palette.length];
  if (points.length) {
    const drawn = points.flatMap(c => {
      const tipText = `<b>${esc(c.op ?? "?")}</b> ${size(c.bytes)}, ${esc(c.group)}<br>${esc(T("reached {}", rate(c.bus_bytes_per_s)))}${c.expected_bus_bytes_per_s ? `<br>${esc(T("expected {}: {}", rate(c.expected_bus_bytes_per_s), pct(c.bus_bytes_per_s / c.expected_bus_bytes_per_s)))}` : ""}<br>${esc(T("wire {}, wait {}", time(c.wire_s), time(c.wait_s)))}`;
      const reached = {x: c.bytes, y: c.bus_bytes_per_s, colour: colour(c.op ?? "?"), tip: tipText};
      return c.expected_bus_bytes_per_s ? [reached, {...reached, y: c.expected_bus_bytes_per_s, hollow: true}] : [reached];
    });
    scatter(box, T("Bus bandwidth by message size"), T("{} collectives", points.length), () => drawn, {id: "coll", logx: true, base: 4, logy: true, fx: size, fy: rate, x: T("message"), y: T("bus bandwidth"), height: 380});
    el(legend(ops.map(o => [o, colour(o)])) , box);
    if (points.some(c => c.expected_bus_bytes_per_s)) el(`<p class="dim">${esc(T("Filled: reached. Rings: what the wiring gives at this size."))}</p>`, box);
  }
  sortable(box, [{name: T("group"), key: "group", left: true, wrap: true}, {name: T("operation"), key: "op", left: true}, {name: T("size"), key: "bytes", show: v => v === null ? "?" : size(v)}, {name: T("count"), key: "count"},
    {name: T("wire"), key: "wire_s", show: time}, {name: T("wait"), key: "wait_s", show: time}, {name: T("wait share"), get: r => r.wait_s / Math.max(1e-12, r.wait_s + r.wire_s), show: v => `<span class="${v > .5 ? "poor" : ""}">${pct(v)}</span>`},
    {name: T("reached"), key: "bus_bytes_per_s", show: v => v ? rate(v) : "\u2013"}, {name: T("expected"), key: "expected_bus_bytes_per_s", show: v => v ? rate(v) : "\u2013"}, {name: T("share"), get: r => r.expected_bus_bytes_per_s ? r.bus_bytes_per_s / r.expected_bus_bytes_per_s : null, show: v => v === null ? "" : `<span class="${v > .8 ? "good" : v > .5 ? "fair" : "poor"}">${pct(v)}</span>`},
    {name: T("last to come"), get: r => r.late_rank, show: (v, r) => v === null ? "\u2013" : esc(T("rank {} ({}×)", v, r.late_count)), left: true}], groups, {by: 5});
}

function lateSection() {
  const late = D.ranks.filter(r => r.late_count > 0).sort((a, b) => b.late_count - a.late_count).slice(0, 20);
  if (!late.length) return;
  const all = sum(D.ranks.map(r => r.late_count)), box = section("Late ranks", T("How often a rank came last to a collective, of {} with a late rank.", all));
  const rows = late.map(r => ({label: T("rank {}", r.rank), notes: [r.late_count.toLocaleString("en-US"), pct(r.late_count / all)], parts: [{from: 0, to: r.late_count, colour: "var(--b)", tip: `<b>${esc(T("rank {}", r.rank))}</b><br>${esc(T("came last {} times; waited {} itself", r.late_count, time(r.collective_wait_s)))}`}]}));
  figure(box, T("Late ranks"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: late[0].late_count, heads: [T("times"), T("share")]}));
}

function eventsSection() {
  const kinds = {};
  const add = (list, dropped) => Object.entries(list ?? {}).forEach(([k, v]) => { const e = kinds[k + dropped] ??= {name: k, dropped, count: 0}; e.count += v; });
  D.ranks.forEach(r => { if (r.dropped_events) { add(r.dropped_events, true); add(r.odd_events, false); } });
  const clocks = D.ranks.filter(r => r.clock_error_s > 0 || r.clock_offset_s);
  const box = section("What was read", D.dropped_events ? T("{} events were dropped.", D.dropped_events.toLocaleString("en-US")) : T("No event was dropped."));
  if (Object.keys(kinds).length) sortable(box, [{name: T("events"), key: "name", left: true, show: v => esc(T(v))}, {name: T("count"), key: "count", show: v => v.toLocaleString("en-US")}, {name: T("what became of them"), key: "dropped", left: true, show: v => esc(T(v ? "dropped" : "odd, used"))}], Object.values(kinds), {by: 1});
  if (clocks.length) sortable(box, [{name: T("rank"), key: "rank"}, {name: T("clock offset"), key: "clock_offset_s", show: v => (v < 0 ? minus : "") + time(Math.abs(v))}, {name: T("error"), key: "clock_error_s", show: time}, {name: T("file"), key: "file", left: true, wrap: true}], clocks, {by: 0, up: true});
  const notes = [...D.notes, ...D.ranks.flatMap(r => (r.notes ?? []).map(n => T("rank {}", r.rank) + ": " + n))];
  if (notes.length) list(notes, box);
}

function stragglerSections() {
  const S = D.straggler, slow = v => v.toFixed(4) + "\u00d7";
  if (S.steps.length > 1) {
    const box = section("Steps"), xs = S.steps;
    const lines = [["measured", "measured_s", "var(--b)"], ["launched at once", "without_delay_s", "var(--a)"], ["ideal", "ideal_s", "var(--good)"]];
    scatter(box, T("Steps"), T("Measured and ideal time of each step"), () => lines.flatMap(([n, key, colour]) => xs.map(s => ({x: s.step, y: s[key], colour, tip: `<b>${esc(T("step"))} ${s.step}</b><br>${esc(T(n))} ${time(s[key])}`}))),
      {id: "steps", fx: v => Number.isInteger(v) ? String(v) : "", fy: time, x: T("step"), y: T("step time"), height: 320, extra: (X, Y) => lines.map(([, key, colour]) => `<polyline fill="none" stroke="${colour}" points="${xs.map(s => X(s.step) + "," + Y(s[key])).join(" ")}"/>`).join("")});
    el(legend(lines.map(([n, , c]) => [T(n), c])), box);
  }
  const box = section("Who is slow", T("Slowdown of the step with only these operations as measured and all others ideal; all together {}.", slow(S.slowdown)));
  const kinds = Object.entries(S.by_type).map(([k, v]) => [k, v]).concat(Object.entries(S.by_stage).map(([k, v]) => [T("stage {}", k), v]), Object.entries(S.by_data_rank).map(([k, v]) => [T("data rank {}", k), v])).sort((a, b) => b[1] - a[1]).slice(0, 16);
  const most = Math.max(1e-9, S.slowdown - 1, ...kinds.map(k => k[1] - 1));
  figure(box, T("Who is slow"), kinds.map(k => k[0] + " " + slow(k[1])).join(", "), W => barRows(W, kinds.map(([label, v], i) => ({label, strong: i === 0, notes: [slow(v)], parts: [{from: 0, to: Math.max(0, v - 1), colour: "var(--b)", tip: `<b>${esc(label)}</b> ${slow(v)}`}]})), {hi: most, ticks: v => "+" + pct(v)}));
  el(`<h3>${esc(T("Workers"))}</h3>`, box);
  const stages = [...new Set(D.ranks.map(r => r.stage))].sort((a, b) => a - b), datas = [...new Set(D.ranks.map(r => r.data_rank))].sort((a, b) => a - b), at = new Map(D.ranks.map(r => [r.stage + "/" + r.data_rank, r]));
  const top = Math.max(1e-9, ...D.ranks.map(r => r.slowdown - 1));
  figure(box, T("Workers"), T("Slowdown of each worker alone"), W => heat(W, stages.map(s => T("stage {}", s)), datas.map(d => T("data rank {}", d)), (i, j) => {
    const r = at.get(stages[i] + "/" + datas[j]);
    return r && {value: (r.slowdown - 1) / top, colour: "var(--poor)", text: slow(r.slowdown), tip: `<b>${esc(T("stage {}", r.stage))}, ${esc(T("data rank {}", r.data_rank))}</b><br>${slow(r.slowdown)}`};
  }, {widest: 90, row: 26}));
  el(`<p class="dim">${esc(T("Explained by the slowest workers {}, by the last stage {}.", pct(S.worker_metric), pct(S.stage_metric)))}</p>`, box);
}

function logSections() {
  const L = D.log, box = section("Step times", L.trainer);
  const rows = [["fastest 5 %", L.fastest_s], ["median", L.median_s], ["mean", L.mean_s], ["95th percentile", L.p95_s]].concat(L.change_step !== null ? [["before the change", L.before_s], ["after the change", L.after_s]] : []).map(([n, v]) => ({label: T(n), notes: [seconds(v)], parts: [{from: 0, to: v, colour: "var(--a)", tip: `<b>${esc(T(n))}</b> ${esc(seconds(v))}`}]}));
  figure(box, T("Step times"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: Math.max(L.p95_s, L.mean_s, L.after_s ?? 0, L.before_s ?? 0)}));
  if (L.change_step !== null) el(`<p>${esc(T("The level changed at step {}.", L.change_step))}</p>`, box);
  if (L.stall_period) el(`<p>${esc(T("Every {} steps one takes {} longer.", L.stall_period, seconds(L.stall_s)))}</p>`, box);
  if (L.timers.length) {
    const timers = section("Timers of the trainer", T("Fastest and slowest rank; what lies between is imbalance."));
    const t = L.timers.slice(0, 24).map(x => ({label: x.name, notes: [time(x.fastest_rank_s), time(x.slowest_rank_s)], parts: [{from: 0, to: x.fastest_rank_s, colour: "var(--a)", tip: `<b>${esc(x.name)}</b> ${time(x.fastest_rank_s)}`}, {from: x.fastest_rank_s, to: x.slowest_rank_s, colour: "var(--b)", tip: `<b>${esc(x.name)}</b><br>${time(x.fastest_rank_s)} \u2026 ${time(x.slowest_rank_s)}`}]}));
    figure(timers, T("Timers of the trainer"), t.map(r => r.label + " " + r.notes.join(" ")).join(", "), W => barRows(W, t, {hi: Math.max(...L.timers.map(x => x.slowest_rank_s)), ticks: time, heads: [T("fastest rank"), T("slowest rank")]}));
  }
}

function hangSections() {
  const H = D.hang, box = section("Ranks that the others wait for");
  H.faulty.length ? H.faulty.forEach(f => el(`<div class="finding critical"><h3>${esc(T("rank {}", f.rank))} <small>${esc(f.kind)}</small></h3><p>${esc(f.evidence)}</p></div>`, box)) : el(`<p>${esc(T("None can be named."))}</p>`, box);
  const open = section("Operations that never ended");
  sortable(open, [{name: T("group"), key: "group", left: true}, {name: T("description"), key: "description", left: true, wrap: true}, {name: T("operation"), key: "op", left: true}, {name: T("number"), key: "sequence"}, {name: T("sizes"), key: "sizes", left: true, wrap: true},
    {name: T("ranks that lack it"), get: r => r.missing.join(", "), left: true, wrap: true}, {name: T("ranks inside"), get: r => r.present.length}], H.pending, {keep: true});
}

if (D.hang) hangSections();
else {
  ladderSection();
  if (D.measured_s > 0) tiles([[seconds(D.measured_s), T("measured a step")], [seconds(D.ideal_s), T("ideal a step")], [pct(1 - D.ideal_s / D.measured_s), T("of the step is lost to the causes below"), D.ideal_s / D.measured_s > .95 ? "good" : "poor"],
    D.world_size && [D.ranks.length + " / " + D.world_size, T("ranks read")], [String(Array.isArray(D.steps) ? D.steps.length : D.steps), T("steps")], D.dropped_events > 0 && [D.dropped_events.toLocaleString("en-US"), T("events dropped"), "fair"]]);
  causesSection();
  if (D.straggler) stragglerSections();
  if (D.log) logSections();
  ranksSection();
  collectivesSection();
  lateSection();
}
eventsSection();
