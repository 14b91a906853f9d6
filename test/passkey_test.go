//go:build linux

package test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
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
	"sluice/tools/conform"
)

const pageOrigin = "https://sluice.example.org"

// phone is a phone with a passkey, and the page that it uses.
type phone struct {
	*playground
	desk    passkey.Desk
	key     *authenticator.Passkey
	file    string // where answers are carried
	command string
}

// withPasskey has a person add a passkey: a link in the terminal, the phone, a look at both, and a yes.
func withPasskey(t *testing.T, w *playground, command string) phone {
	t.Helper()
	site, err := passkey.At(pageOrigin)
	if err != nil {
		t.Fatal(err)
	}
	win := w.inTerminal(130, 60, addsPasskey(command))
	repo, code := linked(win)
	p := phone{playground: w, key: authenticator.New(t, pageOrigin, site.ID()), file: filepath.Join(t.TempDir(), "answer"),
		desk: passkey.Desk{Repo: repo, State: w.stateDir(), Site: site, Now: time.Now}, command: command}
	options, err := p.desk.BeginRegistration(code)
	if err != nil {
		t.Fatal(err)
	}
	reg, err := p.desk.FinishRegistration(code, p.key.Create(options.Challenge))
	if err != nil {
		t.Fatal(err)
	}
	if screen := win.sees(`^Does the phone show the same fingerprint`); !strings.Contains(screen, reg.Key+" was registered for") {
		t.Fatalf("no fingerprint %s:\n%s", reg.Key, screen)
	}
	win.types("y", "Enter")
	win.sees(`^SHA256:\S+ counts now as ann@example.org \(passkey of sluice.example.org\)`)
	win.sees(`^rc=0`)
	return p
}

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

// decides has the phone sign a decision about what gate G asks now.
func (p phone) decides(decision, words string, round ...string) string {
	p.t.Helper()
	asked := filepath.Join(p.t.TempDir(), "asked")
	if code, out := p.binary(p.command, append([]string{"pass", "G", "--unsigned", "-o", asked}, round...)...); code != 0 {
		p.t.Fatal(out)
	}
	data, err := os.ReadFile(asked)
	if err != nil {
		p.t.Fatal(err)
	}
	now, err := approval.ParseApproval(data)
	if err != nil {
		p.t.Fatal(err)
	}
	ask := passkey.Ask{Run: now.Run, Gate: now.Gate, Round: now.Round, Decision: decision, Reviewed: now.Reviewed, Words: words,
		Approvers: []string{"ann@example.org"}}
	began, err := p.desk.BeginDecision(ask)
	if err != nil {
		p.t.Fatal(err)
	}
	ev, err := p.desk.FinishDecision(ask, began.Text, p.key.Get(began.Options.Challenge))
	if err != nil {
		p.t.Fatal(err)
	}
	return ev.Proof
}

// handsIn hands in what was signed.
func (p phone) handsIn(verb, proof string) (code int, out string) {
	p.t.Helper()
	if err := os.WriteFile(p.file, []byte(proof), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return p.binary(p.command, verb, "G", "--signed", p.file)
}

// TestPasskey: a passkey that was registered with a look at the terminal sends work back and passes
// it; what is changed or sent twice is refused; the record is checked by ssh-keygen alone.
func TestPasskey(t *testing.T) {
	conform.Rule(t, "4-trust signed", "a passkey's answer is one of ssh-keygen's; changed or sent twice it is refused")
	needsKeygen(t)
	w, command := gated(t)
	w.write(".workflow/specs/w.yaml", `workflow: {id: w}
steps:
  - {id: A, run: "echo hello >> out.txt", outputs: [out.txt], gate: G}
gates:
  - {id: G, reviewer: {level: human, approvers: [ann@example.org]}, on_pass: {next_step: DONE}, on_fail: {next_step: A}}
`)
	defer w.serve(command)()
	if code, out := w.binary(command, "start", "w"); code != 0 {
		t.Fatal(out)
	}
	w.until(`G`, "inbox")
	p := withPasskey(t, w, command)
	if code, out, _ := w.sluice("keys", "list"); code != 0 || !strings.Contains(out, "passkey of sluice.example.org") {
		t.Errorf("keys list: %d %s", code, out)
	}
	if code, out := w.binary(command, "pass", "G"); code == 0 || !strings.Contains(out, "decide with the passkey at "+pageOrigin) {
		t.Errorf("pass in the terminal: %d %s", code, out)
	}

	failed := p.decides("fail", "say more")
	for what, c := range map[string]struct{ verb, proof, says string }{
		"decision":     {"pass", strings.Replace(failed, "decision: fail", "decision: pass", 1), "was changed after it was signed"},
		"commit":       {"fail", changedAt(failed, "reviewed: "), "was changed after it was signed"},
		"nonce":        {"fail", changedAt(failed, "nonce: "), "was changed after it was signed"},
		"words":        {"fail", strings.Replace(failed, "say more", "say less", 1), "was changed after it was signed"},
		"origin":       {"fail", inSignature(t, failed, "https://sluice.e", "https://sluice.f"), "the passkey signed at https://sluice.f"},
		"one origin":   {"fail", inSignature1(t, failed, "https://sluice.e", "https://sluice.f"), "the passkey signed at https://sluice.e"},
		"verification": {"fail", inSignature(t, failed, "\x1d\x00\x00\x00\x00", "\x19\x00\x00\x00\x00"), "did not verify who used the passkey"},
		"another flag": {"fail", inSignature(t, failed, "\x1d\x00\x00\x00\x00", "\x15\x00\x00\x00\x00"), "the signature is not the passkey's"},
	} {
		if c.proof == failed {
			t.Fatalf("%s: nothing was changed", what)
		}
		if code, out := p.handsIn(c.verb, c.proof); code == 0 || !strings.Contains(out, c.says) {
			t.Errorf("%s changed: %d %s, want %q", what, code, out, c.says)
		}
	}
	if code, out := p.handsIn("fail", failed); code != 0 {
		t.Fatalf("fail: %s", out)
	}
	w.until(`attempt 2(.|\n)*\? G`, "status")
	if code, out := p.handsIn("fail", failed); code == 0 || !strings.Contains(out, "this signed answer was used already") {
		t.Errorf("sent twice: %d %s", code, out)
	}
	if code, out := p.handsIn("pass", p.decides("pass", "well done", "--round", "2")); code != 0 {
		t.Fatalf("pass: %s", out)
	}
	w.until(`w-1 .*completed`, "ls")
	w.until(`w.log: [0-9]+ facts`, "audit", "verify")
	if code, out, errs := w.sluice("audit", "verify", "--json"); code != 0 || !strings.Contains(out, `"signed_answers": 2`) {
		t.Errorf("audit verify: %d %s%s", code, out, errs)
	}
	proofs := recorded(t, w)
	if len(proofs) != 2 {
		t.Fatalf("%d signed answers in the export", len(proofs))
	}
	for _, proof := range proofs {
		p.alone(proof)
	}
	if code, out := w.binary(command, "keys", "rm", "ann@example.org", "--why", "phone lost", "--yes"); code != 0 {
		t.Error(out)
	}
	if code, _, errs := w.sluice("audit", "verify"); code != 0 {
		t.Errorf("audit verify, once the key was removed: %s", errs)
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
func (p phone) alone(proof string) {
	p.t.Helper()
	said, armored, err := approval.Split([]byte(proof))
	if err != nil {
		p.t.Fatal(err)
	}
	list, err := os.ReadFile(approval.Store{State: p.desk.State}.ListFile())
	if err != nil {
		p.t.Fatal(err)
	}
	dir := p.t.TempDir()
	for name, data := range map[string][]byte{"allowed_signers": list, "sig": armored} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			p.t.Fatal(err)
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
			p.t.Errorf("%s: ssh-keygen: %s", what, out)
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

// inSignature changes something everywhere within the frame of a signature.
func inSignature(t *testing.T, proof, old, now string) string { return inFrame(t, proof, old, now, -1) }

// inSignature1 changes it once.
func inSignature1(t *testing.T, proof, old, now string) string { return inFrame(t, proof, old, now, 1) }

func inFrame(t *testing.T, proof, old, now string, n int) string {
	t.Helper()
	said, armored, err := approval.Split([]byte(proof))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(armored)
	block.Bytes = bytes.Replace(block.Bytes, []byte(old), []byte(now), n)
	return string(approval.Join(said, pem.EncodeToMemory(block)))
}
