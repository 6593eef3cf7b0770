// SPDX-License-Identifier: Apache-2.0
// Predictions against measurements: runs, fits, collectives, kernels; pictures, tables that sort and filter.
// Diagonal and the lines of 20 % more and less of a log-log picture.
const diagonal = (X, Y, ax) => {
  const a = ax.ticks[0] / 1e3, b = ax.ticks[ax.ticks.length - 1] * 1e3, l = (f, c) => `<line class="${c}" x1="${X(a)}" y1="${Y(a * f)}" x2="${X(b)}" y2="${Y(b * f)}"/>`;
  return l(1, "eq") + l(1.2, "lim") + l(1 / 1.2, "lim");
};
const errorColumns = name => [
  {name, key: "name", left: true, wrap: true, show: esc}, {name: "rows", key: "rows"}, {name: "predicted", key: "n"},
  {name: "median", key: "median", show: v => Number.isNaN(v) ? "" : `<span class="${grade(v)}">${pct(v)}</span>`, tip: "median |predicted / measured - 1|"},
  {name: "", key: "median", show: v => Number.isNaN(v) ? "" : `<span class="mark" style="width:${Math.min(90, 180 * v)}px;background:var(--${grade(v)})"></span>`, left: true},
  {name: "p90", key: "p90", show: v => Number.isNaN(v) ? "" : pct(v)}, {name: "bias", key: "bias", show: v => Number.isNaN(v) ? "" : spct(v), tip: "median signed error; above zero: predicted too slow"}];
function summarise(rows, key) {
  const groups = new Map();
  rows.forEach(r => { const k = r[key]; if (k === "" || k === null || k === undefined) return; if (!groups.has(k)) groups.set(k, []); groups.get(k).push(r); });
  return [...groups].map(([name, g]) => {
    const e = g.filter(r => r.error !== null).map(r => r.error), a = e.map(Math.abs);
    return {name, rows: g.length, n: e.length, median: quantile(a, .5), p90: quantile(a, .9), bias: quantile(e, .5)};
  });
}
// A choice whose change redraws.
function choice(parent, text, options, onchange, first) {
  const box = el(`<label>${esc(text)} <select>${options.map(([v, t]) => `<option value="${esc(v)}"${v === first ? " selected" : ""}>${esc(t)}</option>`).join("")}</select></label>`, parent);
  box.querySelector("select").onchange = e => onchange(e.target.value);
  return box.querySelector("select");
}

function runsPage(T) {
  const rows = objects(T).filter(r => r.has_figure);
  rows.forEach(r => { r.error = r.predicted && r.measured ? r.predicted / r.measured - 1 : null; });
  const S = T.summary, by = Object.fromEntries(S.by_trust.map(t => [t.trust, t]));
  let tiles = tile(pct(S.coverage), `of ${S.rows} rows with a time predicted`, S.coverage >= .98 ? "good" : "fair");
  for (const t of S.by_trust) if (t.sources) tiles += tile(pct(t.median), `trust ${esc(t.trust)}: median of ${t.sources} source medians; bias ${spct(t.bias)}, p90 of rows ${pct(t.p90)}`, grade(t.median));
  for (const o of T.order) if (o.trust !== "C") tiles += tile(o.mean_tau.toFixed(2), `order of strategies, trust ${esc(o.trust)}: Kendall tau over ${o.groups.length} groups; ${o.mean_of_sources.toFixed(2)} over ${o.sources.length} sources`, o.mean_tau >= .85 ? "good" : "fair");
  if (S.memory_rows) tiles += tile(pct(S.memory_median), `median error of peak memory, ${S.memory_rows} rows`, grade(S.memory_median));
  el(`<div class="tiles">${tiles}</div>`);

  const kinds = [["source", "source"], ["accelerator", "accelerator"], ["links", "links in the host"], ["network", "network"], ["strategy_kind", "strategy"], ["size", "parameters"], ["gpus_class", "GPUs"], ["framework", "framework"], ["year", "year"], ["sequence_class", "sequence"], ["trust", "trust"]];
  const filter = {trust: new Set(["A", "B"]), words: "", pick: {}};
  const bar = el('<div class="bar sticky"><b>Rows</b></div>');
  [...new Set(rows.map(r => r.trust))].sort().forEach(t => {
    const box = el(`<label><input type="checkbox"${filter.trust.has(t) ? " checked" : ""}> trust ${esc(t || "none")}</label>`, bar);
    box.firstElementChild.onchange = e => { e.target.checked ? filter.trust.add(t) : filter.trust.delete(t); redraw(); };
  });
  if (!rows.some(r => filter.trust.has(r.trust))) rows.forEach(r => filter.trust.add(r.trust));
  const selects = {};
  for (const key of ["source", "accelerator", "framework", "strategy_kind"]) {
    const names = [...new Set(rows.map(r => r[key]).filter(Boolean))].sort();
    selects[key] = choice(bar, "", [["", "any " + (kinds.find(k => k[0] === key)[1])], ...names.map(n => [n, n])], v => { filter.pick[key] = v; redraw(); }, "");
  }
  const search = el('<input type="search" placeholder="words: model, strategy, reason ...">', bar);
  search.oninput = () => { filter.words = search.value.toLowerCase(); redraw(); };
  const clear = el("<button>all rows</button>", bar), count = el('<span class="dim"></span>', bar);
  clear.onclick = () => { filter.pick = {}; filter.words = search.value = ""; Object.values(selects).forEach(s => s.value = ""); redraw(); };
  const pick = (key, value) => { filter.pick[key] = value; if (selects[key]) selects[key].value = value; redraw(); scrollTo({top: bar.offsetTop, behavior: "smooth"}); };
  const chosen = () => rows.filter(r => filter.trust.has(r.trust) && Object.entries(filter.pick).every(([k, v]) => !v || r[k] === v) &&
    (!filter.words || filter.words.split(/\s+/).every(w => [r.source, r.model, r.strategy, r.reason, r.accelerator, r.framework].join(" ").toLowerCase().includes(w))));

  const pair = el('<div class="two"></div>');
  const one = el('<section><h2>Predicted over measured step time</h2><div class="bar"></div><div class="draw"></div></section>', pair);
  const two = el('<section><h2>Residuals</h2><div class="bar"></div><div class="draw"></div></section>', pair);
  let colourBy = "trust", over = "params", group = "source";
  choice(one.children[1], "colour", kinds.map(k => k), v => { colourBy = v; redraw(); }, "trust");
  choice(two.children[1], "over", [["params", "parameters"], ["gpus", "GPUs"], ["measured", "measured time"], ["sequence", "sequence"], ["tokens", "tokens per GPU and step"], ["year_number", "year"]], v => { over = v; redraw(); }, "params");
  const three = el('<section><h2>Error by class</h2><div class="bar"></div><div class="draw"></div><p class="dim">A click on a line keeps only its rows.</p></section>');
  choice(three.children[1], "by", kinds.slice(0, 10), v => { group = v; redraw(); }, "source");
  const rowTip = r => `<b>row ${r.row} \u00b7 ${esc(r.source)}</b> (trust ${esc(r.trust)})<br>${esc(r.model)} \u00b7 ${r.gpus} \u00d7 ${esc(r.accelerator)} \u00b7 ${esc(r.framework)}<br>${esc(r.strategy)}<br>measured ${time(r.measured)}, predicted ${time(r.predicted)}: <b>${spct(r.error)}</b>`;

  const four = el('<section><h2>Farthest off</h2><p class="dim">Rows of trust A and B of the whole table, with the bill of the predicted step and what the model thinks limits it.</p><div></div></section>');
  const billNames = T.bill_names, billColour = n => palette[billNames.indexOf(n) % palette.length];
  const worst = T.farthest.map(w => ({...rows.find(r => r.row === w.row), bill: w.bill, chokes: w.choke_points}));
  sortable(four.lastElementChild, [
    {name: "row", key: "row"}, {name: "source", key: "source", left: true, wrap: true, show: (v, r) => `${esc(v)}<br><small>trust ${esc(r.trust)}, ${esc(r.year)}, ${esc(r.links)}, ${esc(r.network)}</small>`},
    {name: "run", key: "model", left: true, wrap: true, show: (v, r) => `${esc(v)} on ${r.gpus} \u00d7 ${esc(r.accelerator)}<br><small>${esc(r.strategy)}</small>`},
    {name: "measured", key: "measured", show: time}, {name: "predicted", key: "predicted", show: time}, {name: "error", get: r => Math.abs(Math.log(1 + r.error)), show: (v, r) => `<b class="poor">${spct(r.error)}</b>`},
    {name: "bill of the prediction", get: r => r.bill[0][1], left: true, show: (v, r) => `<div class="bill" data-tip="${esc(r.bill.map(b => esc(b[0]) + " " + time(b[1])).join("<br>"))}">${r.bill.map(b => `<span style="width:${100 * b[1] / r.predicted}%;background:${billColour(b[0])}"></span>`).join("")}</div><small>${r.bill.slice(0, 3).map(b => esc(b[0]) + " " + Math.round(100 * b[1] / r.predicted) + " %").join(", ")}</small>`},
    {name: "choke point", get: r => r.chokes.length ? r.chokes[0].where : "", left: true, wrap: true, show: (v, r) => r.chokes.slice(0, 2).map(c => `${esc(c.where)} <small>${esc(c.change)}: ${time(c.step_time_s)}</small>`).join("<br>") || '<span class="dim">none found</span>'}], worst, {by: 5});
  if (worst.length) four.insertAdjacentHTML("beforeend", legend(billNames.filter(n => worst.some(w => w.bill.some(b => b[0] === n))).map(n => [n, billColour(n)])));

  if (T.order.length) {
    const groups = T.order.flatMap(o => o.groups.map(g => ({...g, trust: o.trust})));
    const five = el('<section><h2>Order of strategies</h2><p class="dim">Runs of one source on one machine with one model and batch: Kendall tau-b of predicted against measured time; pairs within the noise of the source are left out. The target is a mean of 0.85.</p></section>');
    sortable(five, [{name: "tau", key: "tau", show: v => `<b class="${v >= .85 ? "good" : v >= .6 ? "fair" : "poor"}">${v.toFixed(2)}</b>`}, {name: "trust", key: "trust"}, {name: "source", key: "source_id", left: true}, {name: "runs", key: "what", left: true, wrap: true},
      {name: "strategies", key: "strategies"}, {name: "pairs", key: "pairs"}, {name: "wrong", key: "wrong"},
      {name: "worst pair", get: g => g.worst ? g.worst.measured_ratio : 0, left: true, wrap: true, show: (v, g) => g.worst ? `row ${g.worst.faster_row} <small>${esc(g.worst.faster_strategy)}</small> is ${v.toFixed(2)} times as fast as row ${g.worst.slower_row} <small>${esc(g.worst.slower_strategy)}</small>; predicted ${g.worst.predicted_ratio.toFixed(2)}` : ""}], groups, {by: 0, up: true});
  }
  const six = el('<section><h2>Noise floor</h2><p class="dim">Runs that the model cannot tell apart (same job, strategy and software) but that were measured more than once: how far they stray from the median of their configuration. No model can be nearer than that.</p></section>');
  const bySource = Object.fromEntries(summarise(rows, "source").map(s => [s.name, s]));
  if (T.repeats.length) sortable(six, [{name: "source", key: "source_id", left: true}, {name: "configurations", key: "configurations"}, {name: "rows", key: "rows"},
    {name: "median", key: "median", show: pct}, {name: "p90", key: "p90", show: pct}, {name: "median error of the model", get: r => bySource[r.source_id]?.median, show: v => v === undefined ? "" : pct(v)}], T.repeats, {by: 3});
  else six.insertAdjacentHTML("beforeend", '<p class="dim">No source of this table measured anything twice.</p>');

  const mem = rows.filter(r => r.memory_error !== null);
  if (mem.length) {
    const seven = el('<section><h2>Peak memory</h2><div class="two"><div></div><div></div></div></section>');
    const c = colours(mem, "trust");
    seven.children[1].children[0].innerHTML = plot(mem.map(r => ({x: r.memory / 2 ** 30, y: r.memory * (1 + r.memory_error) / 2 ** 30, colour: c.of(r), tip: `<b>row ${r.row} \u00b7 ${esc(r.source)}</b><br>${esc(r.model)}<br>${esc(r.strategy)}<br>measured ${size(r.memory)}, error ${spct(r.memory_error)}`})),
      {id: "mem", logx: true, logy: true, fx: num, fy: num, x: "measured GiB", y: "predicted GiB", label: "predicted over measured peak memory", extra: diagonal}) + legend(c.entries);
    const m = mem.map(r => ({...r, error: r.memory_error}));
    sortable(seven.children[1].children[1], errorColumns("source"), summarise(m, "source"), {by: 3});
  }
  const eight = el('<section><h2>All rows</h2><div class="draw"></div></section>');

  function redraw() {
    const now = chosen(), done = now.filter(r => r.error !== null), c = colours(done, colourBy);
    const picked = Object.entries(filter.pick).filter(p => p[1]).map(p => p[1]).join(", ");
    count.textContent = `${now.length} rows, ${done.length} predicted` + (done.length ? `, median error ${pct(quantile(done.map(r => Math.abs(r.error)), .5))}` : "") + (picked ? ` \u00b7 ${picked}` : "");
    const span = axis(done.flatMap(r => [r.measured, r.predicted]), true);
    one.querySelector(".draw").innerHTML = plot(done.map(r => ({x: r.measured, y: r.predicted, colour: c.of(r), tip: rowTip(r)})),
      {id: "s", ax: span, ay: span, fx: time, fy: time, x: "measured", y: "predicted (dashed: 20 % off)", label: "predicted over measured step time", extra: diagonal, height: 560}) + legend(c.entries);
    const value = r => over === "tokens" ? r.batch * r.sequence / r.gpus : over === "year_number" ? +r.year : r[over];
    const fine = done.filter(r => value(r) > 0), clamp = e => Math.max(-2, Math.min(2, Math.log2(1 + e)));
    const flat = over !== "year_number";
    let extra = (X, Y, ax) => { const a = X(ax.ticks[0]) - 40, b = X(ax.ticks[ax.ticks.length - 1]) + 40, l = (v, k) => `<line class="${k}" x1="${a}" x2="${b}" y1="${Y(v)}" y2="${Y(v)}"/>`; return l(0, "eq") + l(Math.log2(1.2), "lim") + l(-Math.log2(1.2), "lim"); };
    two.querySelector(".draw").innerHTML = plot(fine.map(r => ({x: value(r), y: clamp(r.error), colour: c.of(r), tip: rowTip(r)})),
      {id: "r", logx: flat, ay: {at: v => (v + 2) / 4, ticks: [-2, -1, 0, 1, 2]}, fx: over === "measured" ? time : flat ? amount : num, fy: v => v === 0 ? "equal" : "\u00d7 " + 2 ** v, x: over === "params" ? "parameters" : over === "tokens" ? "tokens per GPU and step" : over.replace("_number", ""), y: "predicted / measured", label: "residuals", extra, height: 560}) + legend(c.entries);
    const draw = three.querySelector(".draw"); draw.innerHTML = "";
    sortable(draw, errorColumns(kinds.find(k => k[0] === group)[1]), summarise(now, group), {by: group === "year" ? 0 : 3, up: group === "year", pick: s => pick(group, s.name)});
    const all = eight.querySelector(".draw"); all.innerHTML = "";
    sortable(all, [{name: "row", key: "row"}, {name: "trust", key: "trust"}, {name: "source", key: "source", left: true}, {name: "model", key: "model", left: true}, {name: "GPUs", key: "gpus"}, {name: "accelerator", key: "accelerator", left: true}, {name: "framework", key: "framework", left: true},
      {name: "measured", key: "measured", show: v => v ? time(v) : ""}, {name: "predicted", key: "predicted", show: v => v ? time(v) : ""}, {name: "error", key: "error", show: v => v === null ? "" : `<span class="${grade(Math.abs(v))}">${spct(v)}</span>`},
      {name: "memory", key: "memory_error", show: v => v === null ? "" : spct(v)}, {name: "strategy, or why there is no prediction", get: r => r.reason || r.strategy, left: true, wrap: true}], now, {by: 0, up: true, limit: 100});
  }
  redraw();
}

function fitsPage(T) {
  const rows = objects(T).filter(r => r.predicted !== null), S = T.summary;
  const box = el('<section><h2>Fits or runs out of memory</h2></section>');
  const share = (a, b) => b ? pct(a / b) : "none";
  el(`<div class="tiles">${tile(share(S.oom_right + S.ran_right, S.oom + S.ran), `of ${S.oom + S.ran} configurations right`)}${tile(share(S.oom_right, S.oom), `of ${S.oom} that ran out of memory`)}${tile(share(S.ran_right, S.ran), `of ${S.ran} that ran`)}${tile(share(S.near_right, S.near), `of ${S.near} within 25 % of the capacity`)}</div>`, box);
  const ratio = rows.map(r => ({...r, q: r.predicted / r.capacity}));
  const bins = Array.from({length: 24}, (_, i) => ({low: i * .1, ran: 0, oom: 0}));
  ratio.forEach(r => { bins[Math.min(23, Math.floor(r.q * 10))][r.measured_fits ? "ran" : "oom"]++; });
  const top = Math.max(1, ...bins.map(b => Math.max(b.ran, b.oom))), h = v => 150 * Math.sqrt(v / top);
  el(`<svg viewBox="0 0 900 350" role="img" aria-label="predicted need over capacity">${bins.map((b, i) => `<rect x="${40 + i * 34}" width="30" y="${165 - h(b.ran)}" height="${h(b.ran)}" fill="var(--a)" data-tip="${b.ran} ran, predicted need ${b.low.toFixed(1)} to ${(b.low + .1).toFixed(1)} of the capacity"/><rect x="${40 + i * 34}" width="30" y="167" height="${h(b.oom)}" fill="var(--poor)" data-tip="${b.oom} ran out of memory, predicted need ${b.low.toFixed(1)} to ${(b.low + .1).toFixed(1)} of the capacity"/>${i % 2 ? "" : `<text x="${40 + i * 34}" y="338" text-anchor="middle">${b.low.toFixed(1)}</text>`}`).join("")}<line class="lim" x1="380" x2="380" y1="5" y2="325"/><text x="890" y="338" text-anchor="end">predicted need / capacity</text></svg>${""}`, box);
  box.insertAdjacentHTML("beforeend", legend([["ran", "var(--a)"], ["ran out of memory", "var(--poor)"]]) + '<p class="dim">Left of the line the model says it fits. Heights are square roots of counts.</p>');
}

function timedPage(title, T, kinds, x) {
  const rows = objects(T);
  const bin = v => { const e = Math.floor(Math.log(v) / Math.log(x.bin)); return x.show(x.bin ** e) + " to " + x.show(x.bin ** (e + 1)); };
  rows.forEach(r => { r.error = r.predicted && r.measured ? r.predicted / r.measured - 1 : null; r.bin = r[x.key] > 0 ? bin(r[x.key]) : ""; });
  const coloured = kinds[kinds.length - 1][0], tabled = [...kinds, ["bin", x.name]];
  const done = rows.filter(r => r.error !== null), clamp = e => Math.max(-2, Math.min(2, Math.log2(1 + e)));
  const box = el(`<section><h2>${esc(title)}</h2></section>`);
  el(`<div class="tiles">${tile(`${done.length} of ${rows.length}`, "rows predicted")}${done.length ? tile(pct(quantile(done.map(r => Math.abs(r.error)), .5)), "median error", grade(quantile(done.map(r => Math.abs(r.error)), .5))) + tile(spct(quantile(done.map(r => r.error), .5)), "bias") + tile(pct(quantile(done.map(r => Math.abs(r.error)), .9)), "90th percentile") : ""}</div>`, box);
  const bar = el('<div class="bar"></div>', box), pics = el('<div class="two"><div></div><div></div></div>', box), tables = el('<div class="two"></div>', box);
  const pick = {};
  for (const [key, name] of kinds) choice(bar, "", [["", "any " + name], ...[...new Set(rows.map(r => r[key]))].sort().map(v => [v, v])], v => { pick[key] = v; draw(); }, "");
  const boxes = tabled.map(([key, name]) => el("<div></div>", tables));
  function draw() {
    const now = done.filter(r => Object.entries(pick).every(([k, v]) => !v || r[k] === v)), c = colours(now, coloured);
    const words = r => kinds.map(([k]) => esc(r[k])).join(" \u00b7 ") + `<br>row ${r.row}: measured ${time(r.measured)}, predicted ${time(r.predicted)}: <b>${spct(r.error)}</b>`;
    const line = (X, Y, ax) => { const a = X(ax.ticks[0]) - 40, b = X(ax.ticks[ax.ticks.length - 1]) + 40, l = (v, k) => `<line class="${k}" x1="${a}" x2="${b}" y1="${Y(v)}" y2="${Y(v)}"/>`; return l(0, "eq") + l(Math.log2(1.2), "lim") + l(-Math.log2(1.2), "lim"); };
    pics.children[0].innerHTML = plot(now.map(r => ({x: r[x.key], y: clamp(r.error), colour: c.of(r), tip: words(r)})), {id: x.key, logx: true, base: x.base, ay: {at: v => (v + 2) / 4, ticks: [-2, -1, 0, 1, 2]}, fx: x.show, fy: v => v === 0 ? "equal" : "\u00d7 " + 2 ** v, x: x.name, y: "predicted / measured", label: "residuals over size", extra: line}) + legend(c.entries);
    const pts = x.second(now, c, words);
    pics.children[1].innerHTML = plot(pts, {id: x.key + "2", logx: true, base: x.base, logy: x.logy, fx: x.show, fy: x.showy, x: x.name, y: x.y, label: x.y, r: 2.4}) + `<p class="dim">Filled: measured. Rings: predicted.</p>`;
    tabled.forEach(([key, name], i) => {
      const sums = summarise(now, key);
      if (key === "bin") sums.forEach(s => s.order = now.find(r => r.bin === s.name)[x.key]);
      boxes[i].innerHTML = "";
      sortable(boxes[i], key === "bin" ? [{...errorColumns(name)[0], get: s => s.order, show: (v, s) => esc(s.name)}, ...errorColumns(name).slice(1)] : errorColumns(name), sums, key === "bin" ? {by: 0, up: true} : {by: 3});
    });
  }
  draw();
}

if (D.runs) runsPage(D.runs);
if (D.fits) fitsPage(D.fits);
if (D.collectives) timedPage("Collectives", D.collectives, [["system", "system"], ["op", "operation"]], {key: "bytes", name: "message", base: 16, bin: 16, show: size, logy: true, showy: v => num(v), y: "GB/s (message / time)",
  second: (rows, c, words) => rows.flatMap(r => [{x: r.bytes, y: r.bytes / r.measured / 1e9, colour: c.of(r), tip: words(r)}, {x: r.bytes, y: r.bytes / r.predicted / 1e9, colour: c.of(r), tip: words(r), hollow: true}])});
if (D.matmul) timedPage("Kernels", D.matmul, [["table", "table"], ["accelerator", "accelerator"], ["kernel", "kernel"]], {key: "flops", name: "FLOPs of the kernel", bin: 10, show: amount, logy: false, showy: v => pct(v), y: "share of the peak",
  second: (rows, c, words) => rows.filter(r => r.peak > 0).flatMap(r => [{x: r.flops, y: r.flops / r.measured / r.peak, colour: c.of(r), tip: words(r)}, {x: r.flops, y: r.flops / r.predicted / r.peak, colour: c.of(r), tip: words(r), hollow: true}])});
