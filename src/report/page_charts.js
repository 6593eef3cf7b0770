// SPDX-License-Identifier: Apache-2.0
// What every page shares: words, formats, tables, tooltips, and pictures as inline SVG. Pictures are drawn at the width of
// their place and drawn anew when it changes, so that text keeps its size on a phone.
// This and the script of one page are the body of a function of the data D and of the element `main`: an HTML report calls
// it once, the page of `chokepoint serve` every time that something changes.
"use strict";
const tip = document.getElementById("tip");
const esc = s => String(s ?? "").replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));
// Words in the language of the page: {} stands for the values that follow.
const T = (s, ...values) => { let i = 0; return ((D.words ?? {})[s] ?? s).replace(/\{\}/g, () => values[i++]); };
const minus = "\u2212";
const pct = x => (100 * x).toFixed(1) + " %", spct = x => (x >= 0 ? "+" : minus) + Math.abs(100 * x).toFixed(1) + " %";
const num = x => x === null || x === undefined ? "" : Math.abs(x) >= 1e5 || (Math.abs(x) < 1e-2 && x !== 0) ? x.toExponential(2) : +x.toPrecision(4) + "";
const three = v => v >= 1000 ? Math.round(v).toLocaleString("en-US") : v.toPrecision(3);
const time = s => !s || Math.abs(s) < 1e-9 ? "0 s" : s < 0 ? minus + time(-s) : s >= 1 ? three(s) + " s" : s >= 1e-3 ? three(1e3 * s) + " ms" : s >= 1e-6 ? three(1e6 * s) + " \u00b5s" : three(1e9 * s) + " ns";
const amount = v => { let i = 0; while (v >= 1000 && i < 6) { v /= 1000; ++i; } return +v.toPrecision(3) + ["", " K", " M", " B", " T", " P", " E"][i]; };
const size = b => { let i = 0; while (b >= 1024 && i < 5) { b /= 1024; ++i; } return +b.toPrecision(3) + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][i]; };
const rate = b => { let i = 0; while (b >= 1000 && i < 5) { b /= 1000; ++i; } return +b.toPrecision(3) + " " + ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"][i]; };
const usd = v => "$" + (v >= 100 ? Math.round(v).toLocaleString("en-US") : v >= 1 ? v.toFixed(2) : v.toPrecision(2));
const gib = b => (b / 2 ** 30).toFixed(b >= 100 * 2 ** 30 ? 0 : 1) + " GiB";
const quantile = (v, q) => { if (!v.length) return NaN; const s = [...v].sort((a, b) => a - b), at = q * (s.length - 1), i = Math.floor(at); return s[i] + (at - i) * ((s[i + 1] ?? s[i]) - s[i]); };
const sum = v => v.reduce((a, b) => a + b, 0);
const grade = e => e <= .1 ? "good" : e <= .2 ? "fair" : "poor";
const palette = ["#2f7ec4", "#d98324", "#2f9e5f", "#cf5646", "#8c62c4", "#96694f", "#c9569c", "#7d8894", "#9a971f", "#1a9cb0", "#6467b8", "#b5651d"];
const billColour = {compute: "#2f7ec4", recompute: "#86b4de", tensor: "#d98324", context: "#b39522", expert: "#c9569c", pipeline: "#96694f", "data-gather": "#cf5646", "data-reduce": "#e39a8c", bubble: "#8f9aa7", host: "#8c62c4", optimizer: "#2f9e5f", offload: "#1a9cb0", other: "#667080"};
const billName = {compute: "compute", recompute: "recompute", tensor: "exposed tensor", context: "exposed context", expert: "exposed expert", pipeline: "exposed pipeline", "data-gather": "exposed data-gather", "data-reduce": "exposed data-reduce", bubble: "bubble", host: "host and launch", optimizer: "optimizer", offload: "offload", other: "other"};
const trustColour = {A: "var(--a)", B: "var(--b)", C: "var(--c)"};
const objects = t => t.rows.map(r => Object.fromEntries(t.columns.map((c, i) => [c, r[i]])));
const el = (html, parent = main) => { const t = document.createElement("template"); t.innerHTML = html.trim(); const n = t.content.firstElementChild; parent.append(n); return n; };
const section = (title, text = "", parent = main) => el(`<section><h2>${esc(T(title))}</h2>${text ? `<p class="dim">${esc(text)}</p>` : ""}</section>`, parent);

const theme = document.getElementById("theme");
if (theme) theme.onclick = () => {
  const r = document.documentElement, dark = r.dataset.theme ? r.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
  r.dataset.theme = dark ? "light" : "dark";
};
// One tooltip for pointer and keyboard.
function showTip(html, x, y) {
  tip.innerHTML = html;
  tip.style.display = "block";
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, y + 14 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 14) + "px";
}
const hideTip = () => { tip.style.display = "none"; };
if (!tip.dataset.listens) {
  tip.dataset.listens = "yes";
  document.addEventListener("mousemove", e => { const t = e.target.closest?.("[data-tip]"); t ? showTip(t.dataset.tip, e.clientX, e.clientY) : hideTip(); });
  document.addEventListener("focusin", e => { const t = e.target.closest?.("[data-tip]"); if (!t) return hideTip(); const b = t.getBoundingClientRect(); showTip(t.dataset.tip, b.left + Math.min(b.width, 60), b.bottom - 8); });
  document.addEventListener("keydown", e => { if (e.key === "Escape") hideTip(); });
  document.addEventListener("scroll", hideTip, {passive: true});
}
// One mark of a picture is in the tab order; arrows move among the others.
function rove(box) {
  const marks = [...box.querySelectorAll("[data-tip]")], reader = document.createElement("div");
  marks.forEach((m, i) => { reader.innerHTML = m.dataset.tip.replace(/<br>/g, ", "); m.setAttribute("tabindex", i ? -1 : 0); m.setAttribute("role", "img"); m.setAttribute("aria-label", reader.textContent); });
  box.onkeydown = e => {
    const i = marks.indexOf(document.activeElement), d = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
    if (i < 0 || !d) return;
    e.preventDefault();
    const next = marks[Math.max(0, Math.min(marks.length - 1, i + d))];
    marks[i].tabIndex = -1; next.tabIndex = 0; next.focus();
  };
}

// A table with columns {name, key|get, show, left, tip}; a click on a head sorts.
function sortable(parent, columns, rows, options = {}) {
  const box = el('<div class="scroll" tabindex="0"></div>', parent);
  let by = options.by ?? 0, up = options.up ?? false, shown = options.limit ?? 300, sorted = options.keep !== true;
  const value = (c, r) => c.get ? c.get(r) : r[c.key];
  const absent = v => v === null || v === undefined || Number.isNaN(v);
  const order = (a, b) => { const x = value(columns[by], a), y = value(columns[by], b); return x === y ? 0 : absent(x) ? 1 : absent(y) ? -1 : (x < y ? -1 : 1) * (up ? 1 : -1); };
  const draw = () => {
    const list = sorted ? [...rows].sort(order) : rows;
    const head = (k, i) => `<th scope="col" class="${k.left ? "l" : ""}${sorted && i === by ? " sorted" + (up ? " up" : "") : ""}"${sorted && i === by ? ` aria-sort="${up ? "ascending" : "descending"}"` : ""}${k.tip ? ` title="${esc(k.tip)}"` : ""}>${k.name ? `<button type="button" data-i="${i}">${esc(k.name)}</button>` : ""}</th>`;
    let html = "<table><thead><tr>" + columns.map(head).join("") + "</tr></thead><tbody>";
    list.slice(0, shown).forEach((r, n) => { html += `<tr${options.pick ? ` class="pick" data-n="${n}"` : ""}>` + columns.map(k => `<td class="${(k.left ? "l " : "") + (k.wrap ? "wrap" : "")}">${k.show ? k.show(value(k, r), r) : esc(value(k, r))}</td>`).join("") + "</tr>"; });
    box.innerHTML = html + "</tbody></table>" + (list.length > shown ? `<p><button type="button" class="more">${esc(T("{} more", list.length - shown))}</button></p>` : "");
    box.querySelectorAll("th button").forEach(h => h.onclick = () => { const i = +h.dataset.i; up = sorted && i === by ? !up : !!columns[i].left; by = i; sorted = true; draw(); });
    if (options.pick) box.querySelectorAll("tr.pick").forEach(t => t.onclick = () => options.pick(list[+t.dataset.n]));
    const more = box.querySelector(".more");
    if (more) more.onclick = () => { shown += 1000; draw(); };
  };
  draw();
}

// Widths of text, to lay labels out before they are drawn.
const ruler = document.createElement("canvas").getContext("2d");
function textWidth(s, strong = false) { ruler.font = (strong ? "650 " : "") + '12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif'; return ruler.measureText(s).width; }
function clip(s, px, strong = false) {
  s = String(s);
  if (textWidth(s, strong) <= px) return s;
  let lo = 0, hi = s.length;
  while (lo < hi) { const mid = (lo + hi + 1) >> 1; textWidth(s.slice(0, mid) + "\u2026", strong) <= px ? lo = mid : hi = mid - 1; }
  return lo ? s.slice(0, lo).trimEnd() + "\u2026" : "";
}
const txt = (x, y, s, cls = "", anchor = "start") => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" class="${cls}" text-anchor="${anchor}">${esc(s)}</text>`;

// Pictures as files: the SVG with the colours and letters that it has on the page, or its pixels, twice as fine.
const drawnStyles = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font-size", "font-weight", "font-family", "text-anchor", "paint-order"];
function standalone(svg) {
  const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((n, i) => {
    const style = getComputedStyle(n);
    for (const name of drawnStyles) { const v = style.getPropertyValue(name); if (v && v !== "none" || name === "fill") to[i].style.setProperty(name, v); }
    for (const name of ["class", "tabindex", "data-tip", "role", "aria-label", "aria-labelledby"]) to[i].removeAttribute(name);
    for (const name of ["fill", "stroke"]) if (/var\(/.test(to[i].getAttribute(name))) to[i].removeAttribute(name);
  });
  copy.querySelectorAll("style").forEach(n => n.remove());
  const {width, height} = svg.viewBox.baseVal, card = getComputedStyle(document.documentElement).getPropertyValue("--card").trim() || "#fff";
  const hatch = document.getElementById("hatch");
  if (hatch && /#hatch/.test(copy.innerHTML)) copy.insertAdjacentHTML("afterbegin", `<defs>${hatch.outerHTML.replace(/var\(--card\)/g, card)}</defs>`);
  copy.insertAdjacentHTML("afterbegin", `<rect width="${width}" height="${height}" fill="${card}"/>`);
  copy.setAttribute("width", width); copy.setAttribute("height", height);
  copy.style.cssText = "";
  return {text: new XMLSerializer().serializeToString(copy), width, height};
}
function saveFile(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function savePicture(svg, title, kind) {
  const {text, width, height} = standalone(svg), name = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") + "." + kind;
  if (kind === "svg") return saveFile(name, new Blob([text], {type: "image/svg+xml"}));
  const image = new Image(), canvas = document.createElement("canvas"), scale = Math.min(2, 16384 / Math.max(width, height));
  canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale);
  image.onload = () => { canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height); canvas.toBlob(blob => saveFile(name, blob), "image/png"); };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
}
// The two buttons of a picture; they show while pointer or focus is inside its place.
function savable(place, title) {
  const box = el(`<div class="save">${["svg", "png"].map(k => `<button type="button" data-save="${k}" aria-label="${esc(T("save as {}: {}", k.toUpperCase(), title))}">${k.toUpperCase()}</button>`).join("")}</div>`, place);
  box.onclick = e => { const kind = e.target.dataset.save, svg = place.querySelector("svg"); if (kind && svg) savePicture(svg, title, kind); };
}

// A picture: draw(width) gives {height, body}. `least`: narrower places scroll sideways.
// Two pages may be drawn side by side: numbers of pictures are the document's.
const pictureNumber = () => document.documentElement.dataset.pictures = +(document.documentElement.dataset.pictures ?? 0) + 1;
function figure(parent, title, desc, draw, least = 0) {
  const place = el('<div class="shot"><figure class="chart"></figure></div>', parent), box = place.firstChild;
  savable(place, title);
  let width = 0;
  const paint = () => {
    const W = Math.max(least, Math.floor(box.clientWidth));
    if (!box.clientWidth || W === width) return;
    width = W;
    const id = pictureNumber(), {height, body} = draw(W);
    box.innerHTML = `<svg class="draw" width="${W}" height="${Math.ceil(height)}" viewBox="0 0 ${W} ${Math.ceil(height)}" role="group" aria-labelledby="t${id} d${id}"><title id="t${id}">${esc(title)}</title><desc id="d${id}">${esc(desc)}</desc><g><title></title>${body}</g></svg>`;
    rove(box);
  };
  paint();
  new ResizeObserver(paint).observe(box);
  return box;
}

// Axes. `log` axes tick at decades, linear ones at round steps.
function axis(values, log, base = 10) {
  let lo = Math.min(...values), hi = Math.max(...values);
  if (!values.length) { lo = 1; hi = 10; }
  if (log) {
    const of = v => Math.log(v) / Math.log(base);
    lo = Math.floor(of(lo) + 1e-9); hi = Math.max(lo + 1, Math.ceil(of(hi) - 1e-9));
    const ticks = []; for (let d = lo; d <= hi; d += Math.ceil((hi - lo) / 8)) ticks.push(base ** d);
    return {at: v => (of(v) - lo) / (hi - lo), ticks};
  }
  if (hi === lo) hi = lo + 1;
  const step = [1, 2, 5, 10].map(m => m * 10 ** Math.floor(Math.log10((hi - lo) / 5))).find(s => (hi - lo) / s <= 7);
  lo = Math.floor(lo / step) * step; hi = Math.ceil(hi / step) * step;
  const ticks = []; for (let t = lo; t <= hi + step / 2; t += step) ticks.push(+t.toPrecision(8));
  return {at: v => (v - lo) / (hi - lo), ticks};
}

// Rows of bars on one scale. row: {label, notes: [text...], parts: [{from, to, colour, tip, hatch, text, faint}], strong};
// o: {hi, ticks: format, lines: [{at, label}], heads: [text...], row: height}.
// On a narrow place the label stands above its bar; notes have columns of their own, so no text meets another.
function barRows(W, rows, o) {
  const narrow = W < 560, columns = Math.max(0, ...rows.map(r => (r.notes ?? []).length));
  const noteWidths = Array.from({length: columns}, (_, i) => Math.max(...rows.map(r => textWidth(r.notes?.[i] ?? "", r.strong)), textWidth(o.heads?.[i] ?? "")));
  const notesWidth = narrow ? 0 : sum(noteWidths) + 14 * columns;
  const labelWidth = narrow ? 0 : Math.min(o.label ?? W * .36, Math.max(...rows.map(r => textWidth(r.label, r.strong)), textWidth(o.head ?? "")) + 2);
  const x0 = narrow ? 2 : labelWidth + 12, x1 = W - (narrow ? 2 : notesWidth) - (columns ? 0 : 14), X = v => x0 + Math.max(0, Math.min(1, v / o.hi)) * (x1 - x0);
  const rowHeight = narrow ? (o.row ?? 28) + 16 : o.row ?? 28, thick = Math.min(18, (o.row ?? 28) - 4);
  const lines = o.lines ?? [];
  let y = 0, body = "", words = "";
  const head = !narrow && (o.heads || o.head), top = lines.length * 17 + (head ? 20 : 0);
  if (head) {
    if (o.head) body += txt(0, 12, o.head);
    let x = x1 + 14;
    (o.heads ?? []).forEach((h, i) => { body += txt(x + noteWidths[i], 12, h, "", "end"); x += noteWidths[i] + 14; });
  }
  y = top;
  const bottom = top + rows.length * rowHeight;
  if (o.ticks) {
    const span = axis([0, o.hi], false), widest = Math.max(...span.ticks.map(t => textWidth(o.ticks(t)))), every = Math.max(1, Math.ceil((widest + 12) / ((x1 - x0) / o.hi * (span.ticks[1] - span.ticks[0]))));
    span.ticks.forEach((t, i) => {
      if (t > o.hi * 1.0001) return;
      body += `<line class="grid" x1="${X(t)}" x2="${X(t)}" y1="${top}" y2="${bottom + 3}"/>`;
      if (i % every) return;
      const w = textWidth(o.ticks(t)) / 2;
      body += txt(Math.max(w, Math.min(W - w, X(t))), bottom + 16, o.ticks(t), "", "middle");
    });
  }
  for (const r of rows) {
    const cls = r.strong ? "strong" : "ink", barY = narrow ? y + 18 : y + (rowHeight - thick) / 2, base = narrow ? y + 13 : y + rowHeight / 2 + 4;
    if (narrow) {
      const note = (r.notes ?? []).filter(n => n).join(" \u00b7 "), shown = clip(note, W * .62, r.strong);
      words += txt(2, base, clip(r.label, W - textWidth(shown, r.strong) - 14, r.strong), cls) + txt(W - 2, base, shown, cls, "end");
    } else {
      words += txt(0, base, clip(r.label, labelWidth, r.strong), cls);
      let x = x1 + 14;
      (r.notes ?? []).forEach((n, i) => { words += txt(x + noteWidths[i], base, n, cls, "end"); x += noteWidths[i] + 14; });
    }
    if (o.track !== false) body += `<rect class="track" x="${x0}" width="${x1 - x0}" y="${barY}" height="${thick}" rx="2"/>`;
    for (const p of r.parts) {
      if (!(p.to > p.from)) continue;
      const a = X(p.from), w = Math.max(1, X(p.to) - a);
      const shape = `x="${a.toFixed(1)}" width="${w.toFixed(1)}" y="${barY}" height="${thick}"`;
      body += `<rect ${shape} fill="${p.colour}"${p.faint ? ` fill-opacity="${p.faint}"` : ""}${p.tip ? ` data-tip="${esc(p.tip)}"` : ""}/>`;
      if (p.hatch) body += `<rect ${shape} fill="url(#hatch)" pointer-events="none"/>`;
      if (p.text && textWidth(p.text) + 8 <= w) body += `<text x="${(a + w / 2).toFixed(1)}" y="${barY + thick / 2 + 4}" class="on" text-anchor="middle" pointer-events="none">${esc(p.text)}</text>`;
    }
    y += rowHeight;
  }
  lines.forEach((l, i) => {
    const w = textWidth(l.label) / 2, at = X(l.at);
    body += `<line class="${l.cls ?? "cap"}" x1="${at}" x2="${at}" y1="${(head ? 20 : 0) + i * 17 + 14}" y2="${bottom}"/>` + txt(Math.max(w, Math.min(W - w, at)), (head ? 20 : 0) + i * 17 + 11, l.label, "", "middle");
  });
  return {height: bottom + (o.ticks ? 22 : 4), body: body + words};
}
// The pattern over parts that only wait.
if (!document.getElementById("hatch")) el('<svg width="0" height="0" style="position:absolute;width:0;height:0" aria-hidden="true"><defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2.4" height="6" fill="var(--card)" fill-opacity=".75"/></pattern></defs></svg>', document.body);

// Cells on a grid. rows, columns: labels; cell(i, j): {value 0..1, tip, text, colour} or null.
function heat(W, rows, columns, cell, o = {}) {
  const labelWidth = Math.min(W * .3, Math.max(...rows.map(r => textWidth(r)), 10)) + 8;
  const fullest = Math.min(o.widest ?? 72, (W - labelWidth) / columns.length), tilted = Math.max(...columns.map(c => textWidth(c))) > fullest - 4;
  const cw = tilted ? Math.min(o.widest ?? 72, (W - labelWidth - 40) / columns.length) : fullest, rh = o.row ?? Math.max(9, Math.min(26, cw));
  const slanted = tilted, everyColumn = slanted ? Math.max(1, Math.ceil(15 / cw)) : 1, everyRow = Math.max(1, Math.ceil(13 / rh));
  const top = slanted ? Math.min(110, Math.max(...columns.map(c => textWidth(c)))) * .72 + 14 : 18;
  let body = "";
  columns.forEach((c, j) => {
    if (j % everyColumn) return;
    const x = labelWidth + (j + .5) * cw;
    body += slanted ? `<text transform="translate(${(x + 3).toFixed(1)} ${top - 5}) rotate(-45)">${esc(clip(c, 110))}</text>` : txt(x, top - 6, c, "", "middle");
  });
  const cells = rows.map((_, i) => columns.map((_, j) => cell(i, j))), fits = rh >= 14 && cells.every(r => r.every(c => !c?.text || textWidth(c.text) + 4 <= cw));
  rows.forEach((r, i) => {
    const y = top + i * rh;
    if (i % everyRow === 0) body += txt(labelWidth - 8, y + rh / 2 + 4, clip(r, labelWidth - 8), "ink", "end");
    columns.forEach((_, j) => {
      const c = cells[i][j];
      if (!c) return;
      const gap = cw > 6 ? 1 : 0, v = Math.max(0, Math.min(1, c.value));
      body += `<rect x="${(labelWidth + j * cw).toFixed(1)}" y="${y}" width="${Math.max(.5, cw - gap).toFixed(1)}" height="${rh - (rh > 6 ? 1 : 0)}" fill="${c.colour ?? "var(--a)"}" fill-opacity="${(.05 + (fits ? .6 : .95) * v).toFixed(3)}" data-tip="${esc(c.tip)}"/>`;
      if (c.text && fits) body += `<text x="${(labelWidth + (j + .5) * cw).toFixed(1)}" y="${y + rh / 2 + 4}" class="cell" text-anchor="middle" pointer-events="none">${esc(c.text)}</text>`;
    });
  });
  return {height: top + rows.length * rh + 4, body};
}

// Points and lines in a plane. points: {x, y, colour, tip, hollow, big}; o.extra draws with the given mappers.
function plotBody(points, o) {
  const W = o.width ?? 640, H = o.height ?? 480, T_ = o.top ?? 10, B = 44;
  const ax = o.ax ?? axis(points.map(p => p.x), o.logx, o.base), ay = o.ay ?? axis(points.map(p => p.y), o.logy, o.basey);
  const L = o.width ? Math.max(...ay.ticks.map(t => textWidth(o.fy(t)))) + 32 : 66;
  // The same heights in another unit, at the right.
  const R = o.right ? Math.max(...ay.ticks.map(t => textWidth(o.right.format(t)))) + 34 : 26;
  const X = v => L + ax.at(v) * (W - L - R), Y = v => H - B - ay.at(v) * (H - T_ - B);
  const wide = Math.max(...ax.ticks.map(t => textWidth(o.fx(t)))) + 10, every = Math.max(1, Math.ceil(wide * (ax.ticks.length - 1) / (W - L - R)));
  let s = "";
  ax.ticks.forEach((t, i) => { s += `<line class="grid" x1="${X(t)}" x2="${X(t)}" y1="${T_}" y2="${H - B}"/>`; if (i % every === 0) s += txt(X(t), H - B + 19, o.fx(t), "", "middle"); });
  for (const t of ay.ticks) s += `<line class="grid" x1="${L}" x2="${W - R}" y1="${Y(t)}" y2="${Y(t)}"/>` + txt(L - 6, Y(t) + 4, o.fy(t), "", "end") + (o.right ? txt(W - R + 6, Y(t) + 4, o.right.format(t)) : "");
  if (o.right) s += `<text transform="translate(${W - 6} ${(H - B) / 2}) rotate(-90)" text-anchor="middle">${esc(o.right.label)}</text>`;
  const clipId = o.extra ? "clip" + pictureNumber() : "";
  if (o.extra) s += `<clipPath id="${clipId}"><rect x="${L}" y="${T_}" width="${W - L - R}" height="${H - T_ - B}"/></clipPath><g clip-path="url(#${clipId})">${o.extra(X, Y, ax, ay, {left: L, right: W - R, top: T_, bottom: H - B})}</g>`;
  for (const p of points) {
    const paint = p.hollow ? `fill="none" stroke="${p.colour}" stroke-width="1.2"` : `fill="${p.colour}"`;
    s += `<circle class="pt" cx="${X(p.x).toFixed(1)}" cy="${Math.max(T_, Math.min(H - B, Y(p.y))).toFixed(1)}" r="${(o.r ?? 3) + (p.big ?? 0)}" ${paint}${p.strategy ? ` data-strategy="${esc(p.strategy)}"` : ""} data-tip="${esc(p.tip)}"/>`;
  }
  s += txt((L + W - R) / 2, H - 8, o.x, "", "middle") + `<text transform="translate(14 ${(H - B) / 2}) rotate(-90)" text-anchor="middle">${esc(o.y)}</text>`;
  return {height: H, body: s};
}
const plot = (points, o) => `<svg class="plot" viewBox="0 0 640 ${o.height ?? 480}" role="img" aria-label="${esc(o.label)}">${plotBody(points, o).body}</svg>`;
const scatter = (parent, title, desc, points, o) => figure(parent, title, desc, W => plotBody(points(), {...o, width: W, height: Math.max(300, Math.min(o.height ?? 460, W * .62))}));

const legend = (entries, hatch) => '<div class="legend">' + entries.map(([n, c]) => `<span><i style="background:${c}"></i>${esc(n)}</span>`).join("") + (hatch ? `<span><i style="background:repeating-linear-gradient(45deg,var(--c) 0 2px,transparent 2px 4px)"></i>${esc(hatch)}</span>` : "") + "</div>";
function colours(rows, key) {
  if (key === "trust") return {of: r => trustColour[r.trust] ?? "var(--c)", entries: ["A", "B", "C"].map(t => ["trust " + t, trustColour[t]])};
  const counts = {};
  rows.forEach(r => counts[r[key]] = (counts[r[key]] ?? 0) + 1);
  const names = Object.keys(counts).sort((a, b) => counts[b] - counts[a]).slice(0, palette.length);
  return {of: r => { const i = names.indexOf(String(r[key])); return i < 0 ? "var(--c)" : palette[i]; }, entries: names.map((n, i) => [n, palette[i]])};
}
const tile = (value, text, cls = "") => `<div class="tile"><b class="${cls}">${value}</b><span>${text}</span></div>`;
const tiles = list => el(`<div class="tiles">${list.filter(t => t).map(t => tile(esc(t[0]), esc(t[1]), t[2] ?? "")).join("")}</div>`);
const list = (items, parent, cls = "plain") => el(`<ul class="${cls}">${items.map(i => `<li>${esc(i)}</li>`).join("")}</ul>`, parent);

// Parts that fill a bar one after the other.
function stack(items) { let at = 0; return items.map(i => { const from = at; at += i.value; return {...i, from, to: at}; }); }
// Steps from one total to another: rows of {label, value, colour, tip, note}; each starts where the last ended.
function waterfall(parent, title, desc, items, total, o = {}) {
  let at = 0;
  const rows = items.map(i => { const from = at; at += i.value; return {label: i.label, notes: [i.note, o.share === false ? "" : pct(i.value / total.value)], parts: [{from, to: at, colour: i.colour, tip: i.tip, hatch: i.hatch}]}; });
  rows.push({label: total.label, notes: [total.note, ""], strong: true, parts: total.parts ?? [{from: 0, to: total.value, colour: "var(--c)", tip: total.tip}]});
  return figure(parent, title, desc, W => barRows(W, rows, {hi: Math.max(total.value, at), ticks: time, track: false, ...o}));
}
// The map of a host with what is wrong or limiting marked. marks: [{device | kind, severity, tip}].
function wiringMap(parent, svg, marks) {
  const place = el(`<div class="shot"><div class="map" tabindex="0" role="group" aria-label="${esc(T("wiring map"))}">${svg}</div></div>`, parent), box = place.firstChild;
  savable(place, T("wiring map"));
  for (const m of marks) {
    const targets = m.device ? [...box.querySelectorAll("[data-device]")].filter(n => m.device.test(n.dataset.device)) : [...box.querySelectorAll(m.select)];
    for (const t of targets) { t.classList.add(m.cls); if (m.tip) t.dataset.tip = (t.dataset.tip ? t.dataset.tip + "<br>" : "") + m.tip; }
  }
  // Smaller than its natural size only as long as it can be read.
  const picture = box.querySelector("svg"), natural = picture.viewBox.baseVal.width;
  picture.style.cssText = `width:100%;height:auto;max-width:${natural}px;min-width:${.68 * natural}px`;
  rove(box);
  return box;
}
