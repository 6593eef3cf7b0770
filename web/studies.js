// SPDX-License-Identifier: Apache-2.0
// Dialogs: saved studies, sharing, terms. One <dialog> at a time; Escape and the close button end it.
import {get, post, put, remove, Refused} from "./api.js";
import {esc} from "./controls.js";
import {compact, toFragment} from "./state.js";
import {nameOf, terms} from "./terms.js";
import {reader, t} from "./words.js";

function dialog(title, html) {
  document.querySelector("dialog")?.remove();
  const d = document.createElement("dialog");
  d.setAttribute("aria-labelledby", "dialog-title");
  d.innerHTML = `<div class="dialog-head"><h2 id="dialog-title">${esc(title)}</h2><button type="button" class="close" aria-label="${esc(t("close"))}">\u00d7</button></div><div class="dialog-body">${html}</div>`;
  document.body.append(d);
  // The tooltip is a child of the body, below an open dialog: it moves inside while one is open.
  const tip = document.getElementById("tip");
  d.append(tip);
  d.addEventListener("close", () => { document.body.append(tip); d.remove(); });
  d.querySelector(".close").onclick = () => d.close();
  d.addEventListener("click", e => { if (e.target === d) d.close(); });
  d.showModal();
  return d;
}

export function download(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
const document_ = () => ({"chokepoint-page": 1, ...compact(true)});
const say = (d, html) => { d.querySelector(".said").innerHTML = html; };
const problem = error => `<p class="poor" role="alert">${esc(error instanceof Refused ? error.message : t("The server does not answer. Nothing is lost: try again when it runs."))}</p>`;

export async function studies({name, open, saved}) {
  const d = dialog(t("Saved studies"), `<form class="save"><label for="study-name">${esc(t("Name"))}</label><input id="study-name" maxlength="200" value="${esc(name)}"><button>${esc(t("Save what is open"))}</button></form><div class="said"></div><ul class="studies" aria-live="polite"></ul>`);
  const list = d.querySelector(".studies");
  const draw = async () => {
    let all;
    try { all = (await get("studies")).studies; } catch (error) { return say(d, problem(error)); }
    list.innerHTML = all.length ? all.map(s => `<li data-id="${esc(s.id)}"><button type="button" class="link open">${esc(s.name)}</button><small>${esc(new Date(1000 * s.changed_s).toLocaleString(reader.lang, {dateStyle: "medium", timeStyle: "short"}))}</small>` +
      `<button type="button" class="over">${esc(t("overwrite"))}</button><button type="button" class="gone">${esc(t("delete"))}</button></li>`).join("") : `<li class="dim">${esc(t("None yet."))}</li>`;
    for (const li of list.querySelectorAll("[data-id]")) {
      const path = "studies/" + encodeURIComponent(li.dataset.id), {revision} = all.find(s => s.id === li.dataset.id), title = li.querySelector(".open").textContent;
      const guarded = action => async () => { try { await action(); } catch (error) { say(d, problem(error)); } };
      li.querySelector(".open").onclick = guarded(async () => { const s = await get(path); open(s.document, s.name); d.close(); });
      li.querySelector(".over").onclick = guarded(async () => { await put(path, {name: title, document: document_(), revision}); saved(title); say(d, `<p class="good">${esc(t("Saved."))}</p>`); await draw(); });
      const gone = li.querySelector(".gone");
      gone.onclick = () => {
        // A second press deletes.
        if (gone.dataset.sure) return guarded(async () => { await remove(path); await draw(); })();
        gone.dataset.sure = "yes"; gone.textContent = t("really delete?"); gone.classList.add("poor");
      };
    }
  };
  d.querySelector("form").onsubmit = async e => {
    e.preventDefault();
    const title = d.querySelector("#study-name").value.trim();
    if (!title) return say(d, `<p class="poor" role="alert">${esc(t("A study needs a name."))}</p>`);
    try { await post("studies", {name: title, document: document_()}); saved(title); say(d, `<p class="good">${esc(t("Saved."))}</p>`); } catch (error) { return say(d, problem(error)); }
    await draw();
  };
  await draw();
}

export async function share({name, reports}) {
  const link = location.origin + location.pathname + await toFragment();
  const files = Object.keys(compact(true).files ?? {}).length;
  const d = dialog(t("Share"), `<label for="share-link">${esc(t("Link to what is open"))}</label><div class="row"><input id="share-link" readonly value="${esc(link)}"><button type="button" id="copy">${esc(t("copy"))}</button></div>` +
    `<p class="dim">${esc(files ? t("The link has all inputs but the dropped files; the file below has these too.") : t("Whoever opens it on a running chokepoint serve sees the same."))}</p><div class="said" role="status"></div>` +
    `<h3>${esc(t("As a file"))}</h3><div class="bar"><button type="button" id="as-file">${esc(t("everything, to drop on the page again"))}</button></div>` +
    `<h3>${esc(t("The result as a report"))}</h3><div class="bar">${["html", "markdown", "csv"].map(k => `<button type="button" data-report="${k}">${{html: "HTML", markdown: "Markdown", csv: "CSV"}[k]}</button>`).join("")}</div>`);
  const input = d.querySelector("#share-link");
  d.querySelector("#copy").onclick = async () => {
    try { await navigator.clipboard.writeText(link); } catch { input.select(); document.execCommand("copy"); }
    say(d, `<p class="good">${esc(t("Copied."))}</p>`);
  };
  d.querySelector("#as-file").onclick = () => download((name || "chokepoint") + ".json", JSON.stringify(document_(), null, 1), "application/json");
  for (const b of d.querySelectorAll("[data-report]")) b.onclick = async () => {
    b.disabled = true;
    try { await reports(b.dataset.report); } catch (error) { say(d, problem(error)); }
    b.disabled = false;
  };
}

export function glossary() {
  dialog(t("Terms"), `<dl class="terms">${terms.map(x => `<dt>${esc(nameOf(x, reader.lang))}</dt><dd>${esc(x[reader.lang])}</dd>`).join("")}</dl>`);
}
