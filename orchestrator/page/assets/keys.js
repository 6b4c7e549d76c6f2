"use strict";
// What the keyboard does beside the browser's own keys: without this file all of it is
// done with the mouse, too.
(() => {
  const keys = [
    ["/", "find an agent"],
    ["j  k", "to the next, to the one before"],
    ["Enter", "open it"],
    ["Ctrl Enter", "send what you have typed"],
    ["?", "this list"],
    ["Esc", "close, or leave the field"],
  ];
  const make = (tag, all, ...kids) => {
    const e = Object.assign(document.createElement(tag), all);
    e.append(...kids);
    return e;
  };

  // Find hides the rows of agents whose names do not have what is typed.
  const tools = document.getElementById("tools");
  const rows = () => [...document.querySelectorAll("ul.rows > li")];
  let find = null;
  const filter = () => {
    if (!find) return;
    const text = find.value.trim().toLowerCase();
    for (const row of rows()) {
      const name = row.querySelector(".who a");
      row.hidden = text !== "" && !(name && name.textContent.toLowerCase().includes(text));
      if (text && !row.hidden) row.closest("details").open = true;
    }
  };
  if (tools && rows().length > 1) {
    find = make("input", { type: "search", id: "find", placeholder: "Find an agent", ariaLabel: "Find an agent", autocomplete: "off" });
    find.className = rows().length > 8 ? "" : "roomy";
    find.addEventListener("input", filter);
    tools.append(find);
    document.addEventListener("shown", filter);
    if (location.hash === "#find") find.focus();
  }

  const sheet = make("dialog", { id: "keys", ariaLabel: "Keys" }, make("h2", { textContent: "Keys" }),
    make("dl", {}, ...keys.map(([key, what]) => make("div", {}, make("dt", {}, ...key.split(/ +/).flatMap((k, i) => [i ? " " : "", make("kbd", { textContent: k })])), make("dd", { textContent: what })))),
    make("form", { method: "dialog" }, make("button", { className: "quiet", textContent: "Close" })));
  document.body.append(sheet);
  const foot = document.querySelector("footer");
  if (foot) {
    const help = make("button", { type: "button", className: "plain" }, "Keys ", make("kbd", { textContent: "?" }));
    help.addEventListener("click", () => sheet.showModal());
    foot.append(make("p", { className: "roomy" }, help));
  }

  // The things of the page, one below the other: problems, agents, requests, prompts.
  const step = (by) => {
    const all = [...document.querySelectorAll(".trouble, ul.rows > li, .asked > section, .entries > li")].filter((e) => e.getClientRects().length > 0);
    if (all.length === 0) return;
    const on = all.findIndex((e) => e.contains(document.activeElement));
    const next = all[on < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(on + by, 0), all.length - 1)];
    const to = next.querySelector("a, button:not(:disabled), summary") || next;
    if (to === next) next.tabIndex = -1;
    to.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (e) => {
    const field = e.target.closest ? e.target.closest("input, textarea, select") : null;
    if (field && e.key === "Escape" && !sheet.open) { field.blur(); return; }
    if (field && e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
      const send = field.closest("section").querySelector("button[value^='send ']");
      if (send) { e.preventDefault(); send.click(); }
      return;
    }
    if (field || sheet.open || e.ctrlKey || e.metaKey || e.altKey) return;
    switch (e.key) {
      case "/":
        if (find) { find.className = ""; find.focus(); } else if (document.body.dataset.at) location.assign("/page/#find");
        break;
      case "j": step(1); break;
      case "k": step(-1); break;
      case "?": sheet.showModal(); break;
      default: return;
    }
    e.preventDefault();
  });
})();
