// SPDX-License-Identifier: Apache-2.0
// What changes and purchases are worth: answers, sensitivities, scaling curve, money, goodput.
const now = D.now.prediction, money = D.now.money, best = D.best?.prediction;
const usdDay = m => m ? usd(m.usd_per_day) : "";
const told = r => !r ? "" : r.told_apart ? "" : T("within the error of the model");

function ladderSection() {
  if (!D.ladder.length || !now) return;
  const priced = D.ladder.some(r => r.usd_per_day !== null && r.usd_per_day !== undefined);
  const box = section("From peak to useful work", T("Each rung with what it takes of the peak and what that costs a day."));
  let before = 1;
  const rows = [];
  D.ladder.forEach((r, i) => {
    const lost = before - r.fraction;
    if (i > 0 && lost < .0005) return;
    const cost = r.usd_per_day ? T("{} a day", usd(r.usd_per_day)) : "", tipText = `<b>${esc(T(r.name))}</b><br>${esc(T("{} of the peak is left", pct(r.fraction)))}${cost ? "<br>" + esc(cost) : ""}`;
    rows.push({label: T(r.name), strong: i === D.ladder.length - 1, notes: [pct(r.fraction), i ? minus + (100 * lost).toFixed(1) : ""].concat(priced ? [cost] : []), parts: [{from: 0, to: r.fraction, colour: "var(--a)", tip: tipText}, {from: r.fraction, to: before, colour: "var(--poor)", faint: .55, tip: tipText}]});
    before = r.fraction;
  });
  figure(box, T("From peak to useful work"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: 1, heads: [T("left"), T("lost")].concat(priced ? [T("money")] : [])}));
}

function answersSection() {
  if (!D.answers.length || !now) return;
  const box = section("Changes", T("The same strategy after the change, and the best one after it."));
  const rows = [{label: T("as it is"), strong: true, notes: [time(now.step_time_s), "", usdDay(money)], parts: [{from: 0, to: now.step_time_s, colour: "var(--c)", tip: `<b>${esc(T("as it is"))}</b><br>${esc(now.strategy)}<br>${time(now.step_time_s)}`}]}];
  const bar = (label, state, kind) => {
    const p = state.prediction;
    if (!p) return rows.push({label, notes: [T("not possible"), "", ""], parts: []});
    const r = state.step_time_ratio, tipText = `<b>${esc(label)}</b><br>${esc(p.strategy)}<br>${time(p.step_time_s)}${r ? `, ${pct(r.value)} (${pct(r.low)} \u2026 ${pct(r.high)})` : ""}${told(r) ? "<br>" + esc(told(r)) : ""}`;
    rows.push({label, notes: [time(p.step_time_s), r ? spct(r.value - 1) : "", usdDay(state.money)], parts: [{from: 0, to: p.step_time_s, colour: kind, tip: tipText}]});
  };
  for (const a of D.answers) { const name = a.changes.join(", "); bar(name, a.same_strategy, "var(--a)"); bar(name + ", " + T("planned anew"), a.replanned, "var(--good)"); }
  figure(box, T("Step time after each change"), rows.map(r => r.label + " " + r.notes.join(" ")).join(", "), W => barRows(W, rows, {hi: Math.max(...rows.flatMap(r => r.parts.map(p => p.to))), ticks: time, label: W * .4, heads: [T("step"), T("change"), money ? T("a day") : ""]}));
  el(legend([[T("same strategy"), "var(--a)"], [T("planned anew"), "var(--good)"]]), box);
  for (const a of D.answers) {
    const lines = [];
    const reason = a.same_strategy.reason || a.replanned.reason;
    if (reason) lines.push(reason);
    if (a.replanned.prediction && now && a.replanned.prediction.strategy !== now.strategy) lines.push(T("best strategy then: {}", a.replanned.prediction.strategy));
    if (a.replanned.money && money) lines.push(T("{} per billion tokens instead of {}", usd(a.replanned.money.usd_per_billion_tokens), usd(money.usd_per_billion_tokens)));
    if (a.payback?.purchase_usd > 0) lines.push(a.payback.payback_s ? T("{} to buy, saves {} a day: paid back in {} days", usd(a.payback.purchase_usd), usd(a.payback.saved_usd_per_day), Math.ceil(a.payback.payback_s / 86400)) : T("{} to buy, saves nothing: never paid back", usd(a.payback.purchase_usd)));
    if (a.break_even?.usd_per_accelerator_hour_after) lines.push(T("worth up to {} an accelerator-hour", usd(a.break_even.usd_per_accelerator_hour_after)));
    lines.push(...a.notes);
    if (lines.length) { el(`<h3>${esc(a.changes.join(", "))}</h3>`, box); list(lines, box); }
    if (a.bought.items.length) sortable(box, [{name: T("to buy"), key: "what", left: true, wrap: true}, {name: T("count"), key: "count"}, {name: T("each"), key: "usd_each", show: v => v === null ? T("no price") : usd(v)}, {name: T("price of"), get: i => i.price_tag.date + (i.price_tag.estimate ? ", " + T("estimate") : ""), left: true}, {name: T("source"), get: i => i.price_tag.source, left: true, wrap: true}], a.bought.items, {keep: true});
  }
}

function sensitivitySection() {
  const S = D.sensitivities;
  if (!S) return;
  const box = section("Sensitivities", T("Step time if one resource were better, everything else as it is: 10 % better, twice as good, without limit."));
  const shown = S.resources.filter(r => r.step_time_infinite_s < .999 * S.step_time_s).slice(0, 24);
  if (!shown.length) el(`<p>${esc(T("No single resource shortens the step."))}</p>`, box);
  else {
    const rows = shown.map((r, i) => {
      const label = T(r.where || r.resource), tipText = `<b>${esc(label)}</b><br>${esc(T("10 % better: {}", time(r.step_time_plus_10_percent_s)))}<br>${esc(T("twice as good: {}", time(r.step_time_double_s)))}<br>${esc(T("without limit: {}", time(r.step_time_infinite_s)))}<br>d ln T / d ln R = ${num(r.derivative)}`;
      return {label, strong: i === 0, notes: [spct(r.step_time_double_s / S.step_time_s - 1), spct(r.step_time_infinite_s / S.step_time_s - 1), num(+r.derivative.toFixed(3))],
        parts: [{from: 0, to: r.step_time_infinite_s, colour: "var(--a)", tip: tipText}, {from: r.step_time_infinite_s, to: r.step_time_double_s, colour: "var(--b)", faint: .55, tip: tipText}, {from: r.step_time_double_s, to: S.step_time_s, colour: "var(--poor)", tip: tipText}]};
    });
    figure(box, T("Sensitivities"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: S.step_time_s, ticks: time, label: W * .38, heads: [T("twice"), T("no limit"), T("derivative")]}));
    el(legend([[T("left without any limit"), "var(--a)"], [T("gained beyond twice as good"), "var(--b)"], [T("gained by twice as good"), "var(--poor)"]]), box);
  }
  if (S.chain.length) {
    el(`<h3>${esc(T("After this, that"))}</h3>`, box);
    let before = S.step_time_s;
    const rows = [{label: T("as it is"), notes: [time(before), ""], parts: [{from: 0, to: before, colour: "var(--c)", tip: esc(T("as it is")) + " " + time(before)}]}].concat(S.chain.map((f, i) => {
      const last = before; before = f.step_time_s;
      const label = `${i + 1}. ${T(f.where || f.resource)}`, tipText = `<b>${esc(label)}</b><br>${esc(T(f.change))}<br>${time(f.step_time_s)}`;
      return {label, notes: [time(f.step_time_s), spct(f.step_time_s / S.step_time_s - 1)], parts: [{from: 0, to: f.step_time_s, colour: "var(--a)", tip: tipText}, {from: f.step_time_s, to: last, colour: "var(--poor)", faint: .55, tip: tipText}]};
    }));
    figure(box, T("After this, that"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: S.step_time_s, ticks: time, label: W * .42}));
    list(S.chain.map((f, i) => `${i + 1}. ${T(f.where || f.resource)}: ${T(f.change)}`), box);
  }
}

function scaleSections() {
  const points = D.scale.points.filter(p => p.prediction);
  if (!points.length) return;
  const box = section("Scaling", D.scale.grow_batch ? T("The batch grows with the accelerators.") : T("The same batch on more accelerators; each point planned anew."));
  const tipOf = p => `<b>${p.gpus.toLocaleString("en-US")} GPUs</b><br>${esc(p.prediction.strategy)}<br>${amount(p.tokens_per_s)} ${esc(T("tokens/s"))}, ${esc(T("efficiency"))} ${pct(p.efficiency)}${p.bend ? `<br>${esc(T("lost to {}: {}", T(billName[p.bend.class] ?? p.bend.class), pct(p.bend.efficiency_lost)))}` : ""}${p.money ? `<br>${usd(p.money.usd_per_billion_tokens)} ${esc(T("per billion tokens"))}` : ""}`;
  const line = (X, Y, get, colour, dash = "") => `<polyline fill="none" stroke="${colour}" stroke-width="1.8"${dash} points="${points.map(p => X(p.gpus).toFixed(1) + "," + Y(get(p)).toFixed(1)).join(" ")}"/>`;
  const first = points[0], pair = el('<div class="two"><div></div><div></div></div>', box);
  scatter(pair.children[0], T("Throughput"), T("Tokens per second by accelerators"), () => points.map(p => ({x: p.gpus, y: p.tokens_per_s, colour: "var(--a)", big: 1, tip: tipOf(p)})), {id: "thr", logx: true, base: 2, logy: true, basey: 10, fx: v => v.toLocaleString("en-US"), fy: amount, x: T("accelerators"), y: T("tokens/s"), height: 360,
    extra: (X, Y) => line(X, Y, p => first.tokens_per_s / first.gpus * p.gpus, "var(--c)", ' stroke-dasharray="5 4"') + line(X, Y, p => p.tokens_per_s, "var(--a)")});
  scatter(pair.children[1], T("Efficiency"), T("Throughput per accelerator, relative to the best point"), () => points.map(p => ({x: p.gpus, y: p.efficiency, colour: p.bend ? billColour[p.bend.class] ?? "var(--b)" : "var(--a)", big: p.bend ? 3 : 1, tip: tipOf(p)})), {id: "eff", logx: true, base: 2, fx: v => v.toLocaleString("en-US"), fy: v => Math.round(100 * v) + " %", ay: axis([0, Math.max(1, ...points.map(p => p.efficiency))], false), x: T("accelerators"), y: T("efficiency"), height: 360, extra: (X, Y) => line(X, Y, p => p.efficiency, "var(--a)")});
  const bends = [...new Set(points.filter(p => p.bend).map(p => p.bend.class))];
  if (bends.length) el(legend(bends.map(b => [T("bend: {}", T(billName[b] ?? b)), billColour[b] ?? "var(--b)"])), box);
  sortable(box, [{name: "GPUs", key: "gpus", show: v => v.toLocaleString("en-US")}, {name: T("strategy"), get: p => p.prediction.strategy, left: true, wrap: true}, {name: T("step"), get: p => p.prediction.step_time_s, show: time}, {name: T("tokens/s"), key: "tokens_per_s", show: amount}, {name: T("efficiency"), key: "efficiency", show: pct},
    {name: T("what bends it"), get: p => p.bend ? p.bend.class : "", left: true, show: (v, p) => v ? esc(T(billName[v] ?? v)) + ` ${minus}${pct(p.bend.efficiency_lost)}` : ""}, {name: T("goodput"), get: p => p.goodput.goodput, show: pct}].concat(points.some(p => p.money) ? [{name: T("per billion tokens"), get: p => p.money?.usd_per_billion_tokens, show: v => v ? usd(v) : ""}, {name: T("a day"), get: p => p.money?.usd_per_day, show: v => v ? usd(v) : ""}] : []), points, {by: 0, up: true});
  const out = D.scale.points.filter(p => !p.prediction);
  if (out.length) list(out.map(p => `${p.gpus.toLocaleString("en-US")} GPUs: ${p.reason}`), box);
  const priced = points.filter(p => p.money);
  if (priced.length < 2) return;
  const pareto = section("Time against money", T("Time and money for a billion tokens, failures and checkpoints counted; nothing is both faster and cheaper than the points on the line."));
  const at = p => ({x: 1e9 / (p.tokens_per_s * (p.goodput.goodput || 1)) / 3600, y: p.money.usd_per_billion_tokens});
  const front = priced.filter(p => p.on_pareto_front).map(at).sort((a, b) => a.x - b.x);
  scatter(pareto, T("Time against money"), T("Hours and dollars for a billion tokens by accelerators"), () => priced.map(p => ({...at(p), colour: p.on_pareto_front ? "var(--good)" : "var(--c)", big: 2, tip: tipOf(p)})), {id: "par", logx: true, logy: false, basey: 10, fx: v => num(v) + " h", fy: usd, x: T("hours for a billion tokens"), y: T("money for a billion tokens"), height: 380,
    extra: (X, Y) => `<polyline fill="none" stroke="var(--good)" stroke-width="1.5" points="${front.map(p => X(p.x).toFixed(1) + "," + Y(p.y).toFixed(1)).join(" ")}"/>`});
  el(legend([[T("on the front"), "var(--good)"], [T("faster and cheaper exists"), "var(--c)"]]), pareto);
}

function moneySection() {
  if (!money) return D.price_missing ? el(`<p>${esc(D.price_missing)}</p>`, section("Money")) : undefined;
  const box = section("Money", T("At {} an accelerator-hour: {} ({}).", usd(money.usd_per_accelerator_hour), money.price, money.price_tag.date + (money.price_tag.estimate ? ", " + T("estimate") : "")));
  if (D.money_meaning) el(`<p>${esc(T("Money counts useful work: failures and checkpoints (goodput {}) and {} spare hosts are in the price of a step, of tokens, of a run, in savings and break-even. A day costs what is paid for, useful or not. Step times and tokens/s are those while it trains.", pct(D.now.goodput.goodput), D.now.goodput.spare_hosts))}</p>`, box);
  const idle = [...money.idle].filter(i => i.usd_per_day > 0).sort((a, b) => b.usd_per_day - a.usd_per_day);
  if (idle.length) {
    const total = money.usd_per_day, rows = idle.map(i => ({label: T(billName[i.class] ?? i.class), notes: [T("{} a day", usd(i.usd_per_day)), pct(i.usd_per_day / total)], parts: [{from: 0, to: i.usd_per_day, colour: billColour[i.class] ?? "var(--b)", tip: `<b>${esc(T(billName[i.class] ?? i.class))}</b><br>${esc(T("{} a day", usd(i.usd_per_day)))}`}]}));
    el(`<h3>${esc(T("Idle money by cause"))}</h3>`, box);
    figure(box, T("Idle money by cause"), rows.map(r => r.label + " " + r.notes[0]).join(", "), W => barRows(W, rows, {hi: idle[0].usd_per_day, ticks: usd}));
  }
  if (money.run_usd) el(`<p>${esc(T("The whole run: {}, {} days.", usd(money.run_usd), (money.run_s / 86400).toFixed(1)))}</p>`, box);
  el(`<p class="dim">${esc(money.price_tag.source)}</p>`, box);
}

function goodputSection() {
  const g = D.now.goodput;
  if (!g || !now) return;
  const box = section("Goodput", T("Share of the time that trains: {} failures a day are expected; the best checkpoint interval is {}.", num(g.failures_per_day), g.best_interval_s > 3600 ? (g.best_interval_s / 3600).toFixed(1) + " h" : Math.round(g.best_interval_s / 60) + " min"));
  const parts = stack([["training", g.goodput, "var(--good)"], ["checkpoints", g.fraction_checkpoint, "#1a9cb0"], ["work lost", g.fraction_lost_work, "#cf5646"], ["waiting for repair", g.fraction_waiting, "#8f9aa7"]].map(([n, value, colour]) => ({value, colour, n, tip: `<b>${esc(T(n))}</b><br>${pct(value)}`})));
  figure(box, T("Goodput"), parts.map(p => p.n + " " + pct(p.value)).join(", "), W => barRows(W, [{label: T("time"), notes: [pct(g.goodput)], parts}], {hi: 1, ticks: v => Math.round(100 * v) + " %"}));
  el(legend(parts.map(p => [T(p.n) + " " + pct(p.value), p.colour])), box);
}

function breakEvenSection() {
  const b = D.break_even;
  if (!b && !D.deadline) return;
  const box = section("Break-even"), lines = [];
  if (b) {
    lines.push(b.network.bytes_per_s ? T("The slowest network that keeps {} of the efficiency: {} a host; now {}.", pct(b.network.efficiency), rate(b.network.bytes_per_s), rate(b.network.now_bytes_per_s)) : b.network.reason);
    lines.push(T("Largest that fits with the same strategy: {} layers, or {} tokens a sequence, or {} sequences a micro-batch.", b.largest_same_strategy.layers, b.largest_same_strategy.sequence.toLocaleString("en-US"), b.largest_same_strategy.micro_batch));
    lines.push(T("Largest that fits when planned anew: {} layers, or {} tokens a sequence.", b.largest_replanned.layers, b.largest_replanned.sequence.toLocaleString("en-US")));
  }
  if (D.deadline) lines.push(D.deadline.reason ?? T("The deadline is met with {} GPUs: {}.", D.deadline.gpus.toLocaleString("en-US"), D.deadline.prediction?.strategy ?? ""));
  list(lines.filter(l => l), box);
}

ladderSection();
if (now) tiles([[time(now.step_time_s), T("a step; 80 % band {} … {}", time(now.step_time_low_s), time(now.step_time_high_s))], [pct(now.mfu), "MFU"], [Math.round(now.tokens_per_s_per_gpu).toLocaleString("en-US"), T("tokens/s per GPU")], best && best.strategy !== now.strategy && [time(best.step_time_s), T("a step with the best strategy: {}", best.strategy), "good"],
  money && [usd(money.usd_per_day), T("a day; {} per billion tokens", usd(money.usd_per_billion_tokens))], D.now.goodput && [pct(D.now.goodput.goodput), T("goodput")]]);
if (D.left_out?.length) list(D.left_out.map(part => T("left out: {}", T(part))), section("Stopped: what follows was done so far."));
answersSection();
sensitivitySection();
scaleSections();
moneySection();
goodputSection();
breakEvenSection();
if (now?.assumptions?.length) list(now.assumptions, section("Assumptions"));
