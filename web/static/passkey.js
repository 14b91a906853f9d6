// Passkeys: registering one, logging in by it, and signing a decision. Nothing here makes HTML of text.
"use strict";
(() => {
  const find = (what, within = document) => within.querySelector(what);
  const able = Boolean(window.PublicKeyCredential?.parseCreationOptionsFromJSON && window.PublicKeyCredential.parseRequestOptionsFromJSON && navigator.credentials);
  const unable = "This browser cannot use passkeys here: it is too old, or a setting disables them. Use another browser, or decide in a terminal.";
  const say = (words) => { const p = find("[data-keyfault]"); if (p) { p.textContent = words; p.hidden = !words; } };
  const why = (err) => ({
    NotAllowedError: "Nothing was signed: you cancelled, or this device has no passkey for this page.",
    InvalidStateError: "This device already has a passkey for that repo.",
    SecurityError: "The browser does not create passkeys at this address: it needs a domain name, and https with a certificate that it trusts.",
  })[err.name] ?? err.message;
  const ask = async (url, fields) => {
    const res = await fetch(url, { method: "POST", body: new URLSearchParams(fields), redirect: "error" });
    const out = await res.json().catch(() => ({ fault: `The page answered ${res.status}: reload it.` }));
    if (!res.ok) throw new Error(out.fault);
    return out;
  };
  const get = async (options) => JSON.stringify(await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }));
  let busy = false;
  const once = (work) => async (ev) => { // one at a time, and each failure is shown
    ev.preventDefault();
    if (busy) return;
    if (!able) { say(unable); return; }
    busy = true;
    say("");
    try { await work(ev); } catch (err) { say(why(err)); } finally { busy = false; }
  };
  const logIn = async (repo) => {
    const asked = await ask("/login/begin", { repo });
    await ask("/login/finish", { said: asked.said, response: await get(asked.options) });
  };

  // A login, and the confirmation before a form counts.
  const login = find("[data-login]"), prove = find("[data-prove]");
  if (login) {
    login.hidden = false;
    login.addEventListener("click", once(async () => {
      await logIn("");
      location.replace(location.pathname === "/in" ? "/" : location.pathname + location.search);
    }));
  }
  prove?.addEventListener("submit", once(async () => { await logIn(prove.dataset.prove); prove.submit(); }));

  // A decision: what the form says is signed, after a second question where it passes something.
  const sure = (asked) => new Promise((done) => {
    const box = find("#sure"), commit = find("[data-commit]", box), changes = find("[data-changes]", box), words = find("[data-words]", box);
    find("h2", box).textContent = asked.question;
    find("code", commit).textContent = asked.commit;
    commit.hidden = !asked.commit;
    changes.textContent = asked.changes;
    changes.hidden = !asked.changes;
    words.textContent = "With the words: " + asked.words;
    words.hidden = !asked.words;
    find("[data-unsent]", box).hidden = !asked.unsent;
    find("[data-go]", box).textContent = asked.label;
    box.returnValue = "no";
    box.onclose = () => done(box.returnValue === "yes");
    box.showModal();
  });
  const form = find("form[data-passkey]");
  const decide = once(async (ev) => {
    const fields = new URLSearchParams(new FormData(form, ev.submitter));
    const asked = await ask(form.action + "/challenge", fields);
    if (asked.question) {
      if (!await sure(asked)) return;
      fields.set("sure", "yes");
    }
    fields.set("response", await get(asked.options));
    fields.set("said", asked.said);
    location.assign((await ask(form.action + "/signed", fields)).to);
  });
  form?.addEventListener("submit", (ev) => { if (ev.submitter?.name === "outcome") decide(ev); });

  // A registration. The code stands behind the # of the link, and nowhere else.
  const box = find("[data-register]");
  const register = async () => {
    const code = location.hash.slice(1), at = location.pathname;
    const begun = await ask(at + "/begin", { code });
    find("[data-repo]", box).textContent = begun.repo;
    find("[data-ready]", box).hidden = false;
    find("[data-make]", box).addEventListener("click", once(async () => {
      const made = await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(begun.options) });
      const done = await ask(at + "/finish", { code, response: JSON.stringify(made) });
      history.replaceState(null, "", at);
      find("[data-ready]", box).hidden = true;
      find("[data-key]", box).textContent = done.key;
      find("[data-made]", box).hidden = false;
      const look = async () => {
        try {
          const now = await ask(at + "/in", { code });
          if (now.waits) { setTimeout(look, 1500); return; }
          find("[data-made]", box).hidden = true;
          find("[data-added]", box).hidden = false;
          find("[data-open]", box).hidden = !now.in;
        } catch (err) {
          if (err instanceof TypeError) setTimeout(look, 1500); // no network just now
          else say(why(err));
        }
      };
      setTimeout(look, 1500);
    }));
  };
  if (box) {
    if (able) register().catch((err) => say(why(err))); else say(unable);
  } else if ((form || login || prove) && !able) say(unable);
})();
