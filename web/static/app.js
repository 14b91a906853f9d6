// Live parts: while the page is seen, each message is the HTML of one element, by its id, or lines for one.
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  // The one place that makes HTML of text: parts of our own pages, under Trusted Types.
  const asIs = { createHTML: (s) => s };
  const policy = window.trustedTypes?.createPolicy("sluice", asIs) ?? asIs;
  const parsed = (html) => {
    const t = document.createElement("template");
    t.innerHTML = policy.createHTML(html);
    return t.content;
  };

  // A page that is not followed sends nothing, and one that is new, or has changed, no answer.
  const form = find("decide"), round = find("newround"), unkept = find("unkept");
  let seen = false, gone = false;
  const able = () => {
    const same = !form || round.dataset.at === form.dataset.at;
    if (form) find("stale").hidden = same;
    for (const b of document.querySelectorAll("main button:not([hidden])")) b.disabled = gone || b.name === "outcome" && !(seen && same);
  };
  const look = () => document.hidden || setTimeout(() => { seen = true; able(); }, 1100);
  able(); look();
  if (round) new MutationObserver(() => { // a gate that asks meanwhile gets its form
    if (!form && round.dataset.at.endsWith("true")) location.reload();
    able();
  }).observe(round, { attributes: true });

  const lamp = find("lamp"); // only a page that can be followed has one
  const lit = (on, words) => { lamp.classList.toggle("off", !on); lamp.textContent = words; gone = !on; able(); };
  let source = null, again = 0;
  const close = (words = "not live") => { if (source) lit(false, words); source?.close(); source = null; clearTimeout(again); };
  const open = () => {
    if (!lamp || source || document.hidden) return;
    source = new EventSource(location.pathname + location.search);
    source.onopen = () => { lit(true, "live"); if (unkept?.hidden === false) keep(false); };
    source.onmessage = (m) => {
      const next = parsed(m.data).firstElementChild, { to, drop, title } = next.dataset, now = find(to ?? next.id);
      if (title) document.title = title;
      if (to) {
        for (let n = Number(drop); n > 0; n--) now.firstElementChild.remove();
        now.append(...next.children);
      } else if (now && now.outerHTML !== next.outerHTML) Idiomorph.morph(now, next);
    };
    source.onerror = () => { close(source.readyState > 1 ? "refused: a new tab shows why" : "not connected, retrying"); again = setTimeout(open, 2000); };
  };
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else { look(); open(); } });
  addEventListener("pagehide", () => close());
  addEventListener("pageshow", open);
  open();
  if (!form) return;

  // A line's number opens the box for a comment below it, on this page.
  addEventListener("click", async (ev) => {
    const a = ev.target.closest?.(".diff a[href*='at=']");
    if (!a || ev.metaKey || ev.ctrlKey || ev.shiftKey) return;
    ev.preventDefault();
    const row = a.closest("tr"), id = "c-" + row.id;
    if (!find(id)) {
      const box = parsed(await (await fetch(a.href)).text()).getElementById(id);
      if (!box) return void (location.href = a.href);
      row.after(box);
    }
    find(id).querySelector("textarea").focus();
  });

  // What is typed is kept as a draft.
  let later = 0;
  const cancel = () => { clearTimeout(later); later = 0; };
  const keep = async (leaving) => { // one that outlives its page has 64 kB at most
    cancel();
    const sent = fetch(form.action + "/draft", { method: "POST", body: new URLSearchParams(new FormData(form)), keepalive: leaving, redirect: "manual" });
    unkept.hidden = await sent.then((res) => res.type === "opaqueredirect", () => false);
  };
  addEventListener("input", (ev) => { if (ev.target.form === form) { cancel(); later = setTimeout(keep, 1000, false); } });
  addEventListener("pagehide", () => { if (later) keep(true); });
  form.addEventListener("submit", cancel);
})();
