// SPDX-License-Identifier: Apache-2.0
// A host or cluster: map with findings, paths and bandwidths, the collectives it should give, what is unknown.
const grave = {critical: "poor", warning: "fair", info: ""}, escapeRegex = s => s.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

function mapSection() {
  if (!D.svg) return;
  const host = D.hosts[0], box = section("Wiring", D.hosts.length > 1 ? T("{}: the first of {} kinds of host.", host.name, D.hosts.length) : "");
  const devices = [...host.gpus, ...host.nics, ...host.switches];
  // A finding names devices ("GPU3", "mlx5_0"); those of this host are marked in its colour.
  const marks = [];
  for (const f of [...D.findings].reverse()) {
    if (f.severity === "info") continue;
    for (const d of devices) {
      const named = [d.name, d.alias].filter(n => n).some(n => new RegExp(`(^|[^A-Za-z0-9_])${escapeRegex(n)}($|[^A-Za-z0-9_])`).test(f.where));
      if (named) marks.push({device: new RegExp(`^${escapeRegex(d.name)}$`), cls: "mark-" + f.severity, tip: `<b>${esc(f.id)}</b><br>${esc(f.what)}`});
    }
  }
  for (const d of devices) marks.push({device: new RegExp(`^${escapeRegex(d.name)}$`), cls: "device", tip: [d.name, d.alias, d.model, d.bus_id, d.line_bytes_per_s ? rate(d.line_bytes_per_s) : ""].filter(x => x).map(esc).join(", ")});
  wiringMap(box, D.svg, marks);
  if (marks.some(m => m.cls !== "device")) el(legend([[T("critical"), "var(--poor)"], [T("warning"), "var(--b)"]]), box);
}

function findingsSection() {
  const box = section("Findings", D.cost_of ? T(D.cost_of.cluster === "job" ? "Costs for {} on the job's own cluster." : "Costs for {}.", D.cost_of.job) : "");
  if (!D.findings.length) return el(`<p>${esc(T("None."))}</p>`, box);
  const priced = D.findings.filter(f => f.cost && f.cost.lost_s > .0005 * f.cost.step_time_s);
  if (priced.length > 1) figure(box, T("What findings cost"), priced.map(f => f.id + " " + time(f.cost.lost_s)).join(", "), W => barRows(W, [...priced].sort((a, b) => b.cost.lost_s - a.cost.lost_s).map(f => ({label: `${f.id}, ${f.where}`, notes: [time(f.cost.lost_s), pct(f.cost.lost_s / f.cost.step_time_s)], parts: [{from: 0, to: f.cost.lost_s, colour: f.severity === "critical" ? "var(--poor)" : "var(--b)", tip: esc(f.what)}]})), {hi: Math.max(...priced.map(f => f.cost.lost_s)), ticks: time, heads: [T("lost"), T("of the step")]}));
  for (const f of D.findings) {
    const cost = f.cost && (f.cost.lost_s > .0005 * f.cost.step_time_s ? T("{} of a step of {} ({})", time(f.cost.lost_s), time(f.cost.step_time_s), pct(f.cost.lost_s / f.cost.step_time_s)) : T("nothing in this job"));
    const seen = f.evidence.filter(e => e.file).slice(0, 4).map(e => e.line ? `${e.file}:${e.line}` : e.file).join(", ");
    const rows = [["what", esc(f.what)], ["seen", esc(seen)], ["cost", esc(cost ?? "")], ["fix", esc(f.fix)], ["verify", f.verify ? `<code>${esc(f.verify)}</code>` : ""], ["source", esc(f.source)]];
    el(`<div class="finding ${f.severity}"><h3><span class="${grave[f.severity]}">${esc(T(f.severity))}</span> ${esc(f.id)} <small>${esc(f.where)}</small></h3><dl>${rows.filter(r => r[1]).map(r => `<dt>${esc(T(r[0]))}</dt><dd>${r[1]}</dd>`).join("")}</dl></div>`, box);
  }
}

function matrixSection() {
  for (const host of D.hosts) {
    const gpus = host.gpus.map(g => g.name), others = host.nics.map(n => n.name);
    if (gpus.length < 2 && !others.length) continue;
    const box = section("Paths and bandwidths", (D.hosts.length > 1 ? host.name + ": " : "") + T("Between GPUs, and from GPUs to NICs, per direction; a path is as wide as its narrowest link."));
    const paths = new Map();
    host.gpu_pairs.forEach(p => { paths.set(p.a + "/" + p.b, p); paths.set(p.b + "/" + p.a, p); });
    host.gpu_nic.forEach(p => paths.set(p.gpu + "/" + p.nic, p));
    const shown = gpus.slice(0, 64), columns = [...shown, ...others.slice(0, 32)];
    const rates = [...paths.values()].map(p => p.bytes_per_s).filter(b => b > 0), low = Math.log(Math.min(...rates)), high = Math.log(Math.max(...rates));
    const colour = p => p.path.startsWith("NV") || p.path.startsWith("XGMI") ? "var(--good)" : p.path === "PIX" || p.path === "PXB" ? "var(--a)" : p.path === "SYS" ? "var(--poor)" : "var(--b)";
    const text = b => b >= 1e10 ? Math.round(b / 1e9) + "" : (b / 1e9).toFixed(1);
    figure(box, T("Paths and bandwidths"), [...paths.values()].slice(0, 64).map(p => `${p.a ?? p.gpu} to ${p.b ?? p.nic}: ${p.path}${p.bytes_per_s ? " " + rate(p.bytes_per_s) : ""}`).join(", "), W => heat(W, shown, columns, (i, j) => {
      const p = paths.get(shown[i] + "/" + columns[j]);
      if (!p) return null;
      return {value: p.bytes_per_s > 0 ? .25 + .75 * (high > low ? (Math.log(p.bytes_per_s) - low) / (high - low) : 1) : .1, colour: colour(p), text: p.bytes_per_s > 0 ? text(p.bytes_per_s) : p.path, tip: `<b>${esc(shown[i])} \u2013 ${esc(columns[j])}</b><br>${esc(p.path)}${p.nvlinks ? `, ${esc(T("links: {}", p.nvlinks))}` : ""}<br>${p.bytes_per_s > 0 ? rate(p.bytes_per_s) : esc(T("bandwidth unknown"))}`};
    }, {widest: 64, row: 26}), Math.min(900, 60 + 26 * columns.length));
    const used = new Set([...paths.values()].map(colour));
    el(legend([["NVLink, xGMI", "var(--good)"], [T("one or more PCIe switches (PIX, PXB)"), "var(--a)"], [T("through the root complex (PHB, NODE)"), "var(--b)"], [T("between sockets (SYS)"), "var(--poor)"]].filter(l => used.has(l[1]))) + `<p class="dim">${esc(T("Figures in GB/s."))}</p>`, box);
  }
}

function expectedSection() {
  for (const t of D.expected ?? []) {
    const box = section("Expected collectives", T("{}: {} ranks, {} a host", t.op, t.ranks, t.ranks_per_host) + (t.measured_file ? `; ${T("measured")}: ${t.measured_file}.` : "."));
    const points = t.rows.map(r => ({x: r.bytes, y: r.bus_bytes_per_s, colour: "var(--a)", hollow: r.measured_bus_bytes_per_s !== undefined, tip: `<b>${size(r.bytes)}</b><br>${esc(T("expected"))} ${rate(r.bus_bytes_per_s)}, ${time(r.time_s)}<br>${esc(r.algorithm)}/${esc(r.protocol)}, ${esc(T(r.limit === "latency" ? "latency" : r.where))}`}));
    const measured = t.rows.filter(r => r.measured_bus_bytes_per_s > 0).map(r => ({x: r.bytes, y: r.measured_bus_bytes_per_s, colour: "var(--b)", tip: `<b>${size(r.bytes)}</b><br>${esc(T("measured"))} ${rate(r.measured_bus_bytes_per_s)}: ${pct(r.reached)}`}));
    scatter(box, T("Bus bandwidth by message size"), T("{}: at most {}", t.op, rate(Math.max(...t.rows.map(r => r.bus_bytes_per_s)))), () => [...points, ...measured].filter(p => p.y > 0), {id: "e" + t.op, logx: true, base: 16, logy: true, fx: size, fy: rate, x: T("message"), y: T("bus bandwidth"), height: 380, r: 3.4});
    el(legend([[T("expected"), "var(--a)"]].concat(measured.length ? [[T("measured"), "var(--b)"]] : [])), box);
    sortable(box, [{name: T("size"), key: "bytes", show: size}, {name: T("time"), key: "time_s", show: time}, {name: T("bus bandwidth"), key: "bus_bytes_per_s", show: rate}].concat(measured.length ? [{name: T("measured"), key: "measured_bus_bytes_per_s", show: v => v ? rate(v) : ""}, {name: T("reached"), key: "reached", show: v => v ? `<span class="${v > .8 ? "good" : v > .5 ? "fair" : "poor"}">${pct(v)}</span>` : ""}] : [],
      [{name: T("algorithm"), get: r => r.algorithm + "/" + r.protocol, left: true}, {name: T("floor"), key: "floor_s", show: time}, {name: T("limit"), get: r => T(r.limit === "latency" ? "latency" : r.where), left: true, wrap: true}]), t.rows, {keep: true});
  }
}

function fabricSection() {
  const f = D.fabric, d = f.discovered;
  if (f.hosts <= 1 && !d) return;
  const box = section("Fabric", [T("hosts: {}", f.hosts), f.kind, f.transport, f.oversubscription > 1 && T("{}:1 oversubscribed", num(f.oversubscription)), f.host_measured_bytes_per_s && T("measured {} per host", rate(f.host_measured_bytes_per_s))].filter(x => x).join(", ") + ".");
  if (!d) return;
  el(`<p>${esc(T("Discovered: hosts {}, adapters {}, switches {}, levels {}, cables {}", d.hosts, d.adapters, d.switches, d.levels, d.cables))}${d.unreachable_pairs ? `, <b class="poor">${esc(T("unreachable pairs: {}", d.unreachable_pairs))}</b>` : ""}.</p>`, box);
  if (d.leaves.length) sortable(box, [{name: T("leaf"), key: "name", left: true}, {name: T("hosts"), key: "hosts"}, {name: T("adapters"), key: "adapters"}, {name: T("uplinks"), key: "uplinks"}, {name: T("oversubscription"), key: "oversubscription", show: v => v > 0 ? num(v) + ":1" : "\u2013"}], d.leaves, {by: 4});
}

function unknownSection() {
  const notes = [...(D.unknown ?? []), ...D.notes.map(n => n.text), ...D.hosts.flatMap(h => h.notes.map(n => n.text))];
  if (notes.length) list(notes, section("Not known or assumed"));
  if (D.contradictions?.length) list(D.contradictions.map(c => `${c.what} (${[c.first, c.second].map(p => p.line ? `${p.file}:${p.line}` : p.file).join(" / ")})`), section("Contradictions"));
  if (D.files?.length) {
    const box = section("Files");
    sortable(box, [{name: T("file"), key: "file", left: true, wrap: true}, {name: T("kind"), key: "kind", left: true, wrap: true}, {name: T("notes"), get: f => f.notes.map(n => n.text).join("; "), left: true, wrap: true}], D.files, {keep: true});
    if (D.unreadable?.length) list(D.unreadable.map(u => `${u.file}${u.line ? ":" + u.line : ""}: ${u.message}`), box);
  }
}

const of = s => D.findings.filter(f => f.severity === s).length;
tiles([[String(of("critical")), T("critical findings"), of("critical") ? "poor" : "good"], [String(of("warning")), T("warnings"), of("warning") ? "fair" : "good"], [String(of("info")), T("remarks")], [String(D.fabric.hosts), T("hosts")],
  D.hosts.length > 0 && [String(D.hosts[0].gpus.length), T("GPUs a host") + (D.hosts[0].accelerator ? ": " + D.hosts[0].accelerator : "")], [String((D.unknown ?? []).length), T("things unknown")]]);
mapSection();
findingsSection();
matrixSection();
expectedSection();
fabricSection();
unknownSection();
