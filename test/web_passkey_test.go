//go:build linux

package test

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"sluice/engine"
	"sluice/internal/approval/passkey"
	"sluice/tools/conform"
)

// hasAuthenticator adds to the tab's browser a device that makes passkeys and verifies its owner.
func (b *tab) hasAuthenticator() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		if _, err := chromedp.Call(ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return err
		}
		_, err := chromedp.Call(ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
			Options: &webauthn.VirtualAuthenticatorOptions{Protocol: webauthn.AuthenticatorProtocolCtap2,
				Ctap2version: webauthn.Ctap2versionCtap21, Transport: webauthn.AuthenticatorTransportInternal,
				HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}})
		return err
	}))
}

// registers has the browser make a passkey, by a link of the terminal, which confirms it.
func (b *tab) registers(w *playground, sluice, name string) {
	b.t.Helper()
	win := w.inTerminal(160, 30, sluice+" keys add --passkey --name "+name)
	screen := win.sees(`^Waiting for the browser`)
	link := regexp.MustCompile(regexp.QuoteMeta(b.base+passkey.RegisterPath) + `\S+#[0-9a-f]{40}`).FindString(screen)
	if link == "" {
		b.t.Fatalf("no link to %s:\n%s", b.base, screen)
	}
	b.do(chromedp.Navigate(link))
	b.sees("you decide at the gates of work")
	b.shot("passkey-register")
	b.click("[data-make]")
	b.sees("SHA256:")
	key := b.is(`document.querySelector("[data-key]").textContent`)
	if screen := win.sees(`^Does the browser show the same fingerprint`); !strings.Contains(screen, key+" was registered for "+name) {
		b.t.Fatalf("the page shows %s, the terminal\n%s", key, screen)
	}
	if got := b.is(`location.hash`); got != "" {
		b.t.Errorf("the code stays in the address: %s", got)
	}
	b.shot("passkey-made")
	win.types("y", "Enter")
	win.sees(`^rc=0`)
	b.sees("The terminal has confirmed it")
	b.mu.Lock()
	b.said = slices.DeleteFunc(b.said, func(s string) bool { return strings.Contains(s, "pubKeyCredParams") }) // ES256 will do
	b.mu.Unlock()
	b.quiet("the registration")
}

// TestPagePasskey: a browser registers a passkey, which sends work back and passes it at a gate that
// wants a signature; ssh-keygen alone checks what is recorded. Handed in again it is refused.
func TestPagePasskey(t *testing.T) {
	conform.Rule(t, "11-page passkey", "the assertion repacks as …")
	conform.Rule(t, "4-trust signed", "a passkey's answer is one of ssh-keygen's; changed or sent twice it is refused")
	needsKeygen(t)
	w, sluice, _ := paged(t)
	w.write(".workflow/specs/w.yaml", `workflow: {id: w}
steps:
  - {id: A, run: "echo hello >> out.txt", outputs: [out.txt], gate: G}
gates:
  - {id: G, reviewer: {level: human, approvers: [ann@example.org]}, on_pass: {next_step: DONE}, on_fail: {next_step: A}}
`)
	w.start(sluice, "w")
	w.until(`G`, "inbox")
	b := w.login()
	b.hasAuthenticator()
	const at = "/r/work/w-1/g/G"
	b.open(at)
	b.sees("sluice pass G --run w-1 in a terminal signs it")
	b.registers(w, sluice, "ann@example.org")
	if code, out, _ := w.sluice("keys", "list"); code != 0 || !strings.Contains(out, "passkey of ") {
		t.Errorf("keys list: %d %s", code, out)
	}
	if code, out := w.binary(sluice, "pass", "G"); code == 0 || !strings.Contains(out, "decide with the passkey at "+b.base) {
		t.Errorf("pass in the terminal: %d %s", code, out)
	}

	b.open(at)
	b.sees("Your passkey signs what you decide here")
	b.looks()
	b.click(`button[value="fail"]`)
	b.sees("say what is wrong")
	b.forget() // the browser reports the refusal
	b.types("#words", "say more")
	b.click(`button[value="fail"]`)
	b.sees("round 2")
	b.quiet("the fail")
	var failed []string
	eventually(t, "the fail is in the export", func() bool { failed = recorded(t, w); return len(failed) == 1 })
	for says, proof := range map[string]string{"this signed answer was used already": failed[0],
		"was changed after it was signed": changedAt(failed[0], "nonce: ")} {
		w.write("../answer", proof)
		if code, out := w.binary(sluice, "fail", "G", "--signed", filepath.Join(w.dir, "../answer")); code == 0 || !strings.Contains(out, says) {
			t.Errorf("handed in: %d %s, want %q", code, out, says)
		}
	}

	b.open(at)
	b.looks()
	b.types("#words", "well done")
	b.click(`button[value="pass"]`)
	b.until(`document.querySelector("#sure").open`)
	commit := b.is(`document.querySelector("#sure code").textContent`)
	asked := b.is(`document.querySelector("#sure").innerText`)
	for _, want := range []string{"round 2 of w-1", "With the words: well done", "Pass " + commit[:min(len(commit), 7)]} {
		if !strings.Contains(asked, want) || len(commit) != 40 {
			t.Errorf("the second question does not say %q: %q", want, asked)
		}
	}
	b.shot("passkey-sure")
	b.click(`#sure button[value="no"]`)
	b.until(`!document.querySelector("#sure").open`)
	if got := b.is(`document.querySelector("#words").value`); got != "well done" {
		t.Errorf("the words are lost: %q", got)
	}
	// a click before the page has heard that the dialog closed counts for nothing
	b.until(`document.querySelector("#sure").open || document.querySelector("button[value=pass]").click()`)
	b.click(`#sure [data-go]`)
	b.until(`location.pathname == "/r/work/w-1"`)
	b.quiet("the pass")

	if !has(w.factsOf(), func(f engine.RoundPassed) bool {
		return f.Gate == "G" && f.N == 2 && f.By != nil && f.By.Who == "ann@example.org" && f.By.Trust == engine.TrustSigned
	}) {
		t.Error("no fact tells the pass of ann")
	}
	w.until(`w-1 .*completed`, "ls")
	w.until(`w.log: [0-9]+ facts`, "audit", "verify")
	proofs := recorded(t, w)
	if len(proofs) != 2 {
		t.Fatalf("%d signed answers in the export", len(proofs))
	}
	for _, proof := range proofs {
		alone(t, w.stateDir(), proof)
	}
	if code, out := w.binary(sluice, "keys", "rm", "ann@example.org", "--why", "phone lost", "--yes"); code != 0 {
		t.Error(out)
	}
	if code, out, errs := w.sluice("audit", "verify", "--json"); code != 0 || !strings.Contains(out, `"signed_answers": 2`) {
		t.Errorf("audit verify, once the key was removed: %d %s%s", code, out, errs)
	}
}

// TestPasskeyNeedsTheDaemon: without --url and without a daemon, one is told to start it.
func TestPasskeyNeedsTheDaemon(t *testing.T) {
	w, command := gated(t)
	win := w.inTerminal(130, 30, command+" keys add --passkey --name ann")
	screen := win.sees(`^rc=1`)
	if !strings.Contains(screen, "no daemon runs now") || !strings.Contains(screen, "sluice service install") {
		t.Errorf("it says:\n%s", screen)
	}
}
