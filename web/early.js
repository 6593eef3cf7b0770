// SPDX-License-Identifier: Apache-2.0
// Before the first paint: the colours and the language that were chosen last time.
try {
  const kept = JSON.parse(localStorage.getItem("chokepoint.reader") ?? "{}");
  if (kept.theme) document.documentElement.dataset.theme = kept.theme;
  if (kept.lang) document.documentElement.lang = kept.lang;
} catch { /* a browser that keeps nothing starts with its own colours */ }
