"use strict";
// Keeps an open page as it is drawn now. Without this file the page works, and is as
// it was when it was loaded.
(() => {
  const at = document.body.dataset.at;
  const state = document.getElementById("link-state");
  const parts = document.getElementById("parts");

  const span = (s) => {
    s = Math.abs(Math.trunc(s));
    if (s < 60) return s + "s";
    if (s < 3600) return Math.trunc(s / 60) + "m";
    if (s < 48 * 3600) return Math.trunc(s / 3600) + "h";
    return Math.trunc(s / 86400) + "d";
  };
  const rounded = (s) => {
    const of = s >= 47.5 * 3600 ? 86400 : s >= 5400 ? 3600 : s >= 90 ? 60 : 1;
    return Math.round(s / of) * of;
  };
  const two = (n) => String(n).padStart(2, "0");
  const tick = (root) => {
    for (const e of root.querySelectorAll("time[datetime]")) {
      const t = new Date(e.dateTime);
      const ago = (Date.now() - t) / 1000;
      let text = span(ago);
      if (e.className === "till") text = ago < 0 ? "in " + span(rounded(-ago)) : "now";
      if (e.className === "at") text = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}`;
      if (e.textContent !== text) e.textContent = text;
    }
  };
  tick(document);
  setInterval(() => { if (!document.hidden) tick(document); }, 5000);

  // A form is sent from within the page: where nobody answers, the page and what was
  // typed stay. A button that was used does nothing until the answer is there.
  let stop = () => {};
  const idle = () => {
    for (const f of document.forms) delete f.dataset.sent;
    document.body.removeAttribute("aria-busy");
  };
  const failed = (text) => {
    idle();
    let p = document.getElementById("not-done");
    if (!p) { p = document.createElement("p"); p.id = "not-done"; p.className = "said bad"; p.tabIndex = -1; p.setAttribute("role", "alert"); }
    for (const old of document.querySelectorAll("main > .said")) old.remove();
    p.replaceChildren(Object.assign(document.createElement("strong"), { textContent: "Not done:" }), " " + text);
    document.querySelector("main > h1").after(p);
    p.scrollIntoView({ block: "center" });
  };
  const answered = async (res) => {
    if (res.redirected) { location.assign(res.url); return; }
    if (res.status === 401) { location.reload(); return; }
    const doc = new DOMParser().parseFromString(await res.text(), "text/html");
    const words = doc.querySelector("#words p");
    if (!res.ok) { failed(words ? words.textContent.trim() : "the fleet answers with " + res.status + "."); return; }
    stop();
    document.title = doc.title;
    document.body.replaceWith(doc.body);
    scrollTo(0, 0);
  };
  document.addEventListener("submit", (e) => {
    const form = e.target;
    e.preventDefault();
    if (form.dataset.sent) return;
    form.dataset.sent = "yes";
    document.body.setAttribute("aria-busy", "true");
    const data = new URLSearchParams(new FormData(form));
    if (e.submitter && e.submitter.name) data.append(e.submitter.name, e.submitter.value);
    fetch(form.action, { method: "POST", body: data, credentials: "same-origin" }).then(answered)
      .catch(() => failed("the fleet does not answer now. What you typed is kept. Try again when the page is live: what was asked for is done once at most."));
  });
  addEventListener("pageshow", idle);

  if (!at || !parts || !window.EventSource) return;

  const busy = (e) => {
    const on = document.activeElement;
    return e.hasAttribute("data-still") && e.innerHTML !== "" || on && e.contains(on) && /^(INPUT|TEXTAREA|SELECT)$/.test(on.tagName);
  };
  // put replaces what a part shows, and keeps its kids, what is unfolded and where the
  // keyboard is.
  const put = (p) => {
    let e = document.getElementById(p.id);
    if (e && e.tagName !== p.tag.toUpperCase()) { e.remove(); e = null; }
    if (e && busy(e)) { e.dataset.part = p.hash; return; }
    const fresh = e === null;
    if (fresh) { e = document.createElement(p.tag); e.id = p.id; }
    const kids = document.getElementById(p.id + "-kids");
    const open = new Set([...e.querySelectorAll("details[open][id]")].map((d) => d.id));
    const on = document.activeElement;
    const held = on && e.contains(on) && !(kids && kids.contains(on)) ? on.value || on.getAttribute("href") : null;
    const box = document.createElement("template");
    box.innerHTML = p.html + (kids ? "" : p.below || "");
    const below = kids && p.below ? [kids] : [];
    e.replaceChildren(...box.content.childNodes, ...below);
    e.className = p.class || "";
    if (p.label) e.setAttribute("aria-label", p.label); else e.removeAttribute("aria-label");
    e.dataset.part = p.hash;
    for (const d of e.querySelectorAll("details[id]")) if (open.has(d.id)) d.open = true;
    tick(e);
    if (held) for (const b of e.querySelectorAll("button, a")) if ((b.value || b.getAttribute("href")) === held) { b.focus({ preventScroll: true }); break; }
    if (fresh) (document.getElementById(p.into) || parts).append(e);
  };
  const arrange = (order, into) => {
    const wanted = new Set(order);
    for (const e of parts.querySelectorAll("[data-part]")) if (!wanted.has(e.id)) e.remove();
    const last = new Map();
    order.forEach((id, i) => {
      const box = document.getElementById(into[i]) || parts;
      const e = document.getElementById(id);
      if (!e) return;
      const before = last.get(box);
      const next = before ? before.nextElementSibling : box.firstElementChild;
      if (next !== e) box.insertBefore(e, next);
      last.set(box, e);
    });
  };
  const has = () => {
    const all = [...parts.querySelectorAll("[data-part]")].map((e) => e.dataset.part).join("");
    return all.length <= 9000 ? all : "";
  };
  const say = (text) => { if (state.textContent !== text) state.textContent = text; };

  let source = null, wait = 1000, again = 0;
  stop = () => { clearTimeout(again); if (source) source.close(); source = null; };
  // Who may not look any more sees why, and nothing else.
  const over = () => { stop(); parts.replaceChildren(); location.reload(); };
  const start = () => {
    stop();
    if (document.hidden) return;
    source = new EventSource("/page/live?at=" + encodeURIComponent(at) + "&has=" + has());
    source.onopen = () => { wait = 1000; say("live"); };
    source.onmessage = (e) => {
      const m = JSON.parse(e.data);
      if (m.over) { over(); return; }
      if (m.gone) { stop(); say("not there any more"); return; }
      for (const p of m.pieces || []) put(p);
      if (m.order) arrange(m.order, m.into);
    };
    source.onerror = () => {
      const refused = source.readyState === EventSource.CLOSED;
      stop();
      if (refused) fetch("/page/live").then((res) => { if (res.status === 401) over(); }, () => {});
      say("not live: trying again");
      again = setTimeout(start, wait);
      wait = Math.min(wait * 2, 30000);
    };
  };
  document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else start(); });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (e) => { if (e.persisted) start(); });
  start();
})();
