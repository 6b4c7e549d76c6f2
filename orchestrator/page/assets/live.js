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
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const tick = (root) => {
    for (const e of root.querySelectorAll("time[datetime]")) {
      const t = new Date(e.dateTime);
      const ago = (Date.now() - t) / 1000;
      let text = span(ago);
      if (e.className === "till") text = ago < 0 ? "in " + span(rounded(-ago)) : "now";
      if (e.className === "at") {
        const day = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`, clock = `${two(t.getHours())}:${two(t.getMinutes())}`;
        const now = new Date();
        e.title = `${day} ${clock}:${two(t.getSeconds())}`;
        text = t.toDateString() === now.toDateString() ? clock : t.getFullYear() === now.getFullYear() ? `${t.getDate()} ${months[t.getMonth()]} ${clock}` : `${day} ${clock}`;
      }
      if (e.textContent !== text) e.textContent = text;
    }
  };
  tick(document);
  setInterval(() => { if (!document.hidden) tick(document); }, 5000);

  // What became of an act is said at the foot of the window, where it is seen wherever
  // somebody has scrolled to, and moves nothing.
  const said = document.getElementById("said");
  const tell = (p) => {
    if (said) said.replaceChildren(...(p ? [p] : []));
  };
  const failed = (text) => {
    idle();
    const p = Object.assign(document.createElement("p"), { id: "not-done", className: "said bad" });
    p.append(Object.assign(document.createElement("strong"), { textContent: "Not done:" }), " " + text);
    tell(p);
  };
  document.addEventListener("click", (e) => {
    if (!e.target.closest || !e.target.closest("a.close")) return;
    e.preventDefault();
    tell(null);
  });

  let pressed = false, later = [];
  const busy = (e) => {
    const on = document.activeElement;
    return e.hasAttribute("data-still") && e.innerHTML !== "" || on && e.contains(on) && /^(INPUT|TEXTAREA|SELECT)$/.test(on.tagName);
  };
  const hold = (e) => { e.tabIndex = -1; e.focus({ preventScroll: true }); };
  // put replaces what a part shows, and keeps its kids, what is unfolded and where the
  // keyboard is: where that button has gone, at what stands in its place.
  const put = (p) => {
    let e = document.getElementById(p.id);
    if (e && e.tagName !== p.tag.toUpperCase()) { e.remove(); e = null; }
    if (e && busy(e)) { e.dataset.part = p.hash; return; }
    const fresh = e === null;
    if (fresh) { e = document.createElement(p.tag); e.id = p.id; if (p.open) e.open = true; }
    const kids = document.getElementById(p.id + "-kids");
    const open = new Map([...e.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    const on = document.activeElement;
    const inside = on && on !== e && e.contains(on) && !(kids && kids.contains(on));
    const held = inside ? on.value || on.getAttribute("href") || on.textContent : null;
    const box = document.createElement("template");
    box.innerHTML = p.html + (kids ? "" : p.below || "");
    if (kids && p.below) { // stay where they are, with what has the focus in them
      for (const n of [...e.childNodes]) if (n !== kids) n.remove();
      kids.before(...box.content.childNodes);
    } else e.replaceChildren(...box.content.childNodes);
    e.className = p.class || "";
    if (p.label) e.setAttribute("aria-label", p.label); else e.removeAttribute("aria-label");
    e.dataset.part = p.hash;
    for (const d of e.querySelectorAll("details[id]")) if (open.has(d.id)) d.open = open.get(d.id);
    tick(e);
    if (held !== null) {
      const all = [...e.querySelectorAll("button, a, summary")].filter((b) => !b.disabled && !(kids && kids.contains(b)));
      const same = all.find((b) => (b.value || b.getAttribute("href") || b.textContent) === held) || all.find((b) => b.closest(".actions"));
      if (same) same.focus({ preventScroll: true }); else hold(e);
    }
    if (fresh) (document.getElementById(p.into) || parts).append(e);
  };
  const arrange = (order, into) => {
    const wanted = new Set(order);
    for (const e of parts.querySelectorAll("[data-part]")) {
      if (wanted.has(e.id)) continue;
      const held = e.contains(document.activeElement);
      e.remove();
      if (held) document.getElementById("main").focus({ preventScroll: true });
    }
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
  // What is read stays where it is, whatever grows above it: the first part whose
  // beginning is in the window. At the top of the page nothing is above.
  const steady = (change) => {
    const seen = scrollY > 0 ? [...parts.querySelectorAll("[data-part]")].find((e) => e.getBoundingClientRect().top >= 0) : null;
    const before = seen ? seen.getBoundingClientRect().top : 0;
    change();
    if (!seen || !seen.isConnected) return;
    const moved = seen.getBoundingClientRect().top - before;
    if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
  };
  let start = () => {};
  const show = (m) => {
    if (pressed) { later.push(m); return; } // nothing moves under a finger
    steady(() => {
      for (const p of m.pieces || []) put(p);
      if (m.order) arrange(m.order, m.into);
    });
    if (m.title) document.title = m.title;
    const asks = document.getElementById("asks");
    if (asks && m.asks !== undefined) asks.textContent = m.asks ? " " + m.asks : "";
    if (m.loaded) start(); // it may be older than what was told meanwhile: that is told again
    document.dispatchEvent(new Event("shown"));
  };
  addEventListener("pointerdown", () => { pressed = true; });
  const released = () => {
    pressed = false;
    setTimeout(() => { for (const m of later.splice(0)) show(m); }, 0); // after the click
  };
  addEventListener("pointerup", released);
  addEventListener("pointercancel", released);
  // A menu, another window and another tab take the finger away without a word.
  addEventListener("contextmenu", released);
  addEventListener("blur", released);
  document.addEventListener("visibilitychange", released);

  // message is a page that was loaded, as if it had been told: all of its parts.
  const message = (doc) => {
    const m = { title: doc.title, pieces: [], order: [], into: [] };
    const asks = doc.getElementById("asks");
    if (asks) m.asks = asks.textContent.trim();
    for (const e of doc.querySelectorAll("#parts [data-part]")) {
      const kids = doc.getElementById(e.id + "-kids");
      const mine = document.getElementById(e.id);
      const into = e.parentElement.id;
      m.order.push(e.id);
      m.into.push(into);
      if (mine && mine.dataset.part === e.dataset.part) continue;
      const copy = e.cloneNode(true);
      const inner = kids ? copy.querySelector("#" + kids.id) : null;
      let below = "";
      if (inner) { inner.replaceChildren(); below = inner.outerHTML; inner.remove(); }
      m.pieces.push({ id: e.id, into, tag: e.tagName.toLowerCase(), class: e.className, label: e.getAttribute("aria-label"), open: e.open, hash: e.dataset.part, html: copy.innerHTML, below });
    }
    return m;
  };

  // A form is sent from within the page, which stays where it is: where nobody answers,
  // what was typed stays, too. A button that was used does nothing until the answer is
  // there.
  let stop = () => {};
  const idle = () => {
    for (const f of document.forms) delete f.dataset.sent;
    document.body.removeAttribute("aria-busy");
  };
  // takes shows what a loaded page says: its parts, and what the next tap sends.
  const takes = (doc) => {
    for (const name of ["key", "csrf"]) {
      const now = document.querySelector(`#act [name=${name}]`), next = doc.querySelector(`#act [name=${name}]`);
      if (now && next) now.value = next.value;
    }
    show({ ...message(doc), loaded: true });
  };
  const parse = async (res) => new DOMParser().parseFromString(await res.text(), "text/html");
  const answered = async (res, sent) => {
    if (sent.id !== "act" && res.redirected) { location.assign(res.url); return; } // it has entered
    if (res.status === 401) { location.reload(); return; }
    const doc = await parse(res);
    const words = doc.querySelector("#words p");
    if (!res.ok) { failed(words ? words.textContent.trim() : "the fleet answers with " + res.status + "."); return; }
    if (sent.id !== "act") { // it has left
      stop();
      document.title = doc.title;
      document.body.replaceWith(doc.body);
      scrollTo(0, 0);
      return;
    }
    const p = doc.querySelector("#said > .said");
    if (p && !p.classList.contains("bad")) for (const e of document.querySelectorAll("[form=act][name^=text-]")) e.value = "";
    if (doc.getElementById("act")) takes(doc);
    else { // the answer alone: this page may have changed, or be gone
      const now = await fetch(location.pathname + location.search, { credentials: "same-origin" });
      if (!now.ok) { location.assign("/page/"); return; }
      takes(await parse(now));
    }
    tell(p);
    idle();
  };
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (form.method === "dialog") return;
    e.preventDefault();
    if (form.dataset.sent) return;
    form.dataset.sent = "yes";
    document.body.setAttribute("aria-busy", "true");
    const data = new URLSearchParams(new FormData(form));
    if (e.submitter && e.submitter.name) data.append(e.submitter.name, e.submitter.value);
    fetch(form.action, { method: "POST", body: data, credentials: "same-origin" }).then((res) => answered(res, form))
      .catch(() => failed("the fleet does not answer now. What you typed is kept. Try again when the page is live: what was asked for is done once at most."));
  });
  addEventListener("pageshow", idle);

  if (!at || !parts || !window.EventSource) return;

  const has = () => {
    const all = [...parts.querySelectorAll("[data-part]")].map((e) => e.dataset.part).join("");
    return all.length <= 9000 ? all : "";
  };
  const say = (text) => { if (state.textContent !== text) state.textContent = text; };

  let source = null, wait = 1000, again = 0;
  stop = () => { clearTimeout(again); if (source) source.close(); source = null; };
  // Who may not look any more sees why, and nothing else.
  const over = () => { stop(); parts.replaceChildren(); location.reload(); };
  start = () => {
    stop();
    if (document.hidden) return;
    source = new EventSource("/page/live?at=" + encodeURIComponent(at) + "&has=" + has());
    source.onopen = () => { wait = 1000; say("live"); };
    source.onmessage = (e) => {
      const m = JSON.parse(e.data);
      if (m.over) { over(); return; }
      if (m.gone) { stop(); say("gone"); return; }
      show(m);
    };
    source.onerror = () => {
      const refused = source.readyState === EventSource.CLOSED;
      stop();
      if (refused) fetch("/page/live").then((res) => { if (res.status === 401) over(); }, () => {});
      say("not live");
      again = setTimeout(start, wait);
      wait = Math.min(wait * 2, 30000);
    };
  };
  document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else start(); });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (e) => { if (e.persisted) start(); });
  start();
})();
