//go:build linux

package test

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sluice/engine"
	"sluice/internal/approval/passkey"
	"sluice/tools/conform"
)

// deviceName is the page's name for other devices.
const deviceName = "sluice.example.org"

// device opens a browser that takes any certificate and finds the page's name on this machine, as
// another device does that trusts the page's CA.
func device(t *testing.T) *tab {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("needs: chromium (apt-get install chromium)")
	}
	alloc, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("ignore-certificate-errors", true),
		chromedp.Flag("host-resolver-rules", "MAP "+deviceName+" 127.0.0.1"))...)
	t.Cleanup(end)
	return opened(t, alloc)
}

// named is a world whose daemon shows its page at a name, with a certificate of its own.
func named(t *testing.T) (w *playground, sluice, base string) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("needs: openssl (apt-get install openssl)")
	}
	w, sluice = gated(t)
	dir := t.TempDir()
	key, cert := filepath.Join(dir, "key"), filepath.Join(dir, "cert")
	if out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
		"-keyout", key, "-out", cert, "-days", "30", "-subj", "/CN="+deviceName, "-addext", "subjectAltName=DNS:"+deviceName).
		CombinedOutput(); err != nil {
		t.Fatalf("openssl: %v %s", err, out)
	}
	port := freePort(t)
	w.env = append(w.env, "SLUICE_CONFIG_WEB_LISTEN=127.0.0.1:"+port, "SLUICE_CONFIG_WEB_NAME="+deviceName,
		"SLUICE_CONFIG_WEB_CERT="+cert, "SLUICE_CONFIG_WEB_KEY="+key)
	w.serve(sluice)
	return w, sluice, "https://" + deviceName + ":" + port
}

// TestPageOnAnotherDevice: a registration logs in; a passkey confirms what steers, logs in again, and
// decides at a gate that wants no signature.
func TestPageOnAnotherDevice(t *testing.T) {
	conform.Rule(t, "11-page device", "From another device it is worth a named person, by a passkey …")
	w, sluice, base := named(t)
	w.start(sluice, "w")
	w.until(`G`, "inbox")
	b := device(t)
	b.base = base
	b.hasAuthenticator()
	b.open("/")
	b.sees("Log in with a passkey")
	b.click("[data-login]")
	b.sees("this device has no passkey for this page")
	b.forget() // the browser reports the page without a login
	win := w.inTerminal(130, 60, sluice+" keys add --passkey --name ann@example.org")
	screen := win.sees(`^Waiting for the phone`)
	b.do(chromedp.Navigate(regexp.MustCompile(regexp.QuoteMeta(base+passkey.RegisterPath) + `\S+#[0-9a-f]{40}`).FindString(screen)))
	b.sees("you decide at the gates of work")
	b.click("[data-make]")
	b.sees("SHA256:")
	win.sees(`^Does the phone show the same fingerprint`)
	win.types("y", "Enter")
	b.sees("The terminal has confirmed it")
	b.forget()
	b.click("[data-open]")
	b.sees("G review")

	b.open("/r/work/w-1")
	b.click(`form[action$="/pause"] button`)
	b.sees("Confirm that it is you")
	b.shot("passkey-prove")
	b.forget() // and the form that did not count yet
	b.click(`[data-prove] button`)
	b.until(`document.querySelector('form[action$="/resume"]')`)
	b.click(`form[action$="/resume"] button`)
	b.until(`document.querySelector('form[action$="/pause"]')`)
	b.quiet("steering")

	b.click(`form[action="/out"] button`)
	b.sees("Log in with a passkey")
	b.shot("passkey-login")
	b.forget()
	b.click("[data-login]")
	b.sees("G review")
	b.open("/r/work/w-1/g/G")
	b.sees("Your passkey signs what you decide here")
	b.looks()
	b.click(`button[value="pass"]`)
	b.until(`document.querySelector("#sure").open`)
	b.click(`#sure [data-go]`)
	b.until(`!document.querySelector("#decide")`)
	b.quiet("the decision")
	w.until(`w-1 .*completed`, "ls")
	facts := w.factsOf()
	if !has(facts, func(f engine.RoundPassed) bool {
		return f.By != nil && f.By.Who == "ann@example.org" && f.By.Trust == engine.TrustSigned
	}) {
		t.Error("no fact tells the pass of ann")
	}
	if !has(facts, func(f engine.RunPaused) bool {
		return f.By != nil && strings.Contains(f.By.Via, "with the passkey of ann@example.org")
	}) {
		t.Error("no fact tells who paused it")
	}
}
