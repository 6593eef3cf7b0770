// SPDX-License-Identifier: Apache-2.0
// Words of the page in the reader's language. English is the key. Two files in one format (English line, Russian line, blank
// line): that of the reports, so that both say the same, and the page's own.
export const reader = {lang: document.documentElement.lang === "ru" ? "ru" : "en"};
let russian = {};

function parse(text) {
  const out = {};
  for (const block of text.split(/\n\s*\n/)) {
    const lines = block.split("\n").filter(l => l && !l.startsWith("#"));
    if (lines.length === 2) out[lines[0]] = lines[1];
  }
  return out;
}

export async function loadWords() {
  if (reader.lang !== "ru" || russian.loaded) return;
  const texts = await Promise.all(["words_ru.txt", "page_ru.txt"].map(n => fetch("/assets/" + n).then(r => r.ok ? r.text() : "")));
  russian = {...parse(texts[1]), ...parse(texts[0]), loaded: "yes"};
}

/// Dictionary for the scripts of the reports.
export const dictionary = () => reader.lang === "ru" ? russian : {};

/// {} stands for the values that follow, {2} for the second one.
export function t(text, ...values) {
  let i = 0;
  return (dictionary()[text] ?? text).replace(/\{(\d*)\}/g, (_, n) => values[n ? n - 1 : i++]);
}

/// As the reports write figures, in every language.
export const count = v => Number(v).toLocaleString("en-US");

export function keepReader(change) {
  let kept = {};
  try { kept = JSON.parse(localStorage.getItem("chokepoint.reader") ?? "{}"); } catch { kept = {}; }
  try { localStorage.setItem("chokepoint.reader", JSON.stringify({...kept, ...change})); } catch { /* private window */ }
}
