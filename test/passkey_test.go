//go:build linux

package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/internal/approval"
	"sluice/internal/approval/passkey"
	"sluice/tools/authenticator"
)

const pageOrigin = "https://sluice.example.org"

func addsPasskey(command string) string {
	return command + " keys add --passkey --url " + pageOrigin + " --name ann@example.org"
}

// linked reads the link off the terminal.
func linked(win *terminalWindow) (repo, code string) {
	win.t.Helper()
	screen := win.sees(`^Waiting for the phone`)
	link := regexp.MustCompile(pageOrigin + `/register/(\S+)#([0-9a-f]{40})`).FindStringSubmatch(screen)
	if link == nil || !strings.Contains(screen, "█") {
		win.t.Fatalf("no link, or no QR code:\n%s", screen)
	}
	return link[1], link[2]
}

// TestPasskeyNotAdded: without a look at the terminal nothing is added, and a link that was left counts
// no more.
func TestPasskeyNotAdded(t *testing.T) {
	w, command := gated(t)
	for _, args := range [][]string{
		{"keys", "add", "--passkey", "--url", pageOrigin, "--name", "ann"},
		{"keys", "add", "--passkey", "--url", pageOrigin, "--name", "ann", "--yes"},
		{"keys", "add", "--passkey", "--name", "ann"},
		{"keys", "add", "--passkey", "--url", "https://192.0.2.1", "--name", "ann"},
		{"keys", "add", "--passkey", "--agent", "--url", pageOrigin, "--name", "ann"},
	} {
		if code, out, errs := w.sluice(args...); code != 2 {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		}
	}
	site, err := passkey.At(pageOrigin)
	if err != nil {
		t.Fatal(err)
	}
	line := addsPasskey(command)
	// the shell has to outlive the Ctrl-C that ends the second command
	win := w.inTerminal(130, 60, `trap : INT; `+line+`; echo "first=$?"; read x; clear; echo second; `+line)
	repo, code := linked(win)
	states, err := filepath.Glob(filepath.Join(filepath.Dir(w.dir), "state", "sluice", repo))
	if err != nil || len(states) != 1 {
		t.Fatalf("%v %v", states, err)
	}
	desk := passkey.Desk{Repo: repo, State: states[0], Site: site, Now: time.Now}
	options, err := desk.BeginRegistration(code)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := desk.FinishRegistration(code, authenticator.New(t, pageOrigin, site.ID()).Create(options.Challenge)); err != nil {
		t.Fatal(err)
	}
	win.sees(`^Does the phone show the same fingerprint`)
	win.types("n", "Enter")
	win.sees(`^it was not added`)
	win.sees(`^first=1`)
	win.types("Enter")
	win.sees(`(?s)^second.*^Waiting for the phone`)
	_, second := linked(win)
	win.types("C-c")
	win.sees(`^rc=130`)
	for _, c := range []string{code, second} {
		if _, err := desk.BeginRegistration(c); err == nil || !strings.Contains(err.Error(), "is not known") {
			t.Errorf("a code that was left: %v", err)
		}
	}
	if _, out, errs := w.sluice("keys", "ls"); strings.Contains(out, "SHA256") {
		t.Errorf("added all the same: %s%s", out, errs)
	}
}

// recorded returns the signed answers in the export.
func recorded(t *testing.T, w *playground) (proofs []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, ".workflow", "audit", "w.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range regexp.MustCompile(`"proof":"(?:[^"\\]|\\.)*"`).FindAllString(string(data), -1) {
		var proof string
		if err := json.Unmarshal([]byte(strings.TrimPrefix(raw, `"proof":`)), &proof); err != nil {
			t.Fatal(err)
		}
		proofs = append(proofs, proof)
	}
	return proofs
}

// alone has ssh-keygen check an answer in a folder with nothing but the list.
func alone(t *testing.T, state, proof string) {
	t.Helper()
	said, armored, err := approval.Split([]byte(proof))
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(approval.Store{State: state}.ListFile())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"allowed_signers": list, "sig": armored} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		said []byte
		good bool
	}{"as it is": {said, true}, "changed": {[]byte(changedAt(string(said), "reviewed: ")), false}} {
		cmd := exec.Command("ssh-keygen", "-Y", "verify", "-n", "sluice-gate", "-f", "allowed_signers", "-I", "ann@example.org",
			"-s", "sig")
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(c.said)
		out, _ := cmd.CombinedOutput() // what it says tells the two apart
		if good := strings.Contains(string(out), `Good "sluice-gate" signature for ann@example.org`); good != c.good {
			t.Errorf("%s: ssh-keygen: %s", what, out)
		}
	}
}

// changedAt changes the digit behind a text.
func changedAt(s, behind string) string {
	i := strings.Index(s, behind) + len(behind)
	digit := "0"
	if s[i] == '0' {
		digit = "1"
	}
	return s[:i] + digit + s[i+1:]
}
