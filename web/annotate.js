// SPDX-License-Identifier: Apache-2.0
// Explains the terms of the field where they stand: on hover and on focus, the first time in each section.
import {nameOf, terms} from "./terms.js";
import {reader} from "./words.js";

const places = "section > h2, section > p.dim, section h3, .strip span, .tile span, .legend span";

export function annotate(root) {
  for (const node of root.querySelectorAll(places)) {
    if (node.querySelector(".term")) continue;
    const done = new Set();
    for (const text of [...node.childNodes].filter(n => n.nodeType === 3)) mark(text, done);
  }
  // Marks of pictures: the name that their tooltip starts with is explained below it.
  for (const mark of root.querySelectorAll("svg [data-tip]")) {
    const name = /^<b>(.*?)<\/b>/.exec(mark.dataset.tip)?.[1];
    const term = name && !mark.dataset.told && terms.find(x => x.find.test(name));
    if (term) { mark.dataset.tip += `<br><span class="dim">${term[reader.lang]}</span>`; mark.dataset.told = "yes"; }
  }
}

function mark(text, done) {
  for (const term of terms) {
    const hit = done.has(term.name) ? null : term.find.exec(text.data);
    if (!hit || !hit[0]) continue;
    done.add(term.name);
    const rest = text.splitText(hit.index + hit[0].length), word = text.splitText(hit.index), span = document.createElement("span");
    span.className = "term";
    span.tabIndex = 0;
    span.setAttribute("role", "note");
    span.dataset.tip = `<b>${nameOf(term, reader.lang)}</b><br>${term[reader.lang]}`;
    span.setAttribute("aria-description", term[reader.lang]);
    word.replaceWith(span);
    span.append(word);
    mark(text, done);
    return mark(rest, done);
  }
}
