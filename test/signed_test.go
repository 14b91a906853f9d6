//go:build linux

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/console"
	"sluice/internal/workspace"
	"sluice/tools/conform"
)

// forgeries are ways for an agent to have a signed gate passed: each is a shell script; R is the repo's root, W the folder
// of all that the test has, S the state folder.
const forgeries = `
try() { "$@" >>"$R/tried" 2>&1; }
try cp "$W/home/.ssh/id_ann" "$R/stolen"; try cp "$HOME/.ssh/id_ann" "$R/stolen"
try sh -c 'cat "$S"/approvers/* > "$R/list"'
ssh-keygen -q -t ed25519 -N "" -f key
try sh -c 'mkdir -p "$S/approvers"; echo "ann@example.org $(cat key.pub)" >> "$S/approvers/allowed_signers"'
try sluice -C "$R" keys add key.pub --name ann@example.org
env -u SLUICE_TOKEN XDG_STATE_HOME="$W/state" sluice -C "$R" keys add key.pub --name ann@example.org >>"$R/tried" 2>&1
try sluice -C "$R" keys sign carried --key key --yes
ssh-keygen -q -Y sign -n sluice-gate -f key carried && cat carried carried.sig > "$R/.workflow/signals/G-pass"
# What a person signed and left lying about: it is no agent's to hand in.
cp anns "$R/.workflow/signals/$SLUICE_RUN/G-pass" 2>/dev/null
cp anns "$(dirname "$SLUICE_SIGNAL")/G-pass.md"
touch done
until [ -e go ]; do sleep 0.05; done
`

// TestSignedAgainstAgents: an agent in a sandbox neither sees a person's key nor the list, and what it hands in is its own
// word, be it signed by a person; doctor tells a key within its reach from one that is not.
func TestSignedAgainstAgents(t *testing.T) {
	t.Parallel()
	needsKeygen(t)
	conform.Rule(t, "4-trust signed", "no agent in a sandbox signs, hands in or changes whose signature counts")
	w := newCaged(t, "sandbox: {mode: on}\nagents: {writer: {command: [sh, ./write.sh]}, forger: {command: [sh, ./forge.sh], env: [R, W, S]}}\nroles: {writer: {agent: writer}, forger: {agent: forger}}\n")
	state := filepath.Join(w.work, "state", "sluice")
	w.put("repo/write.sh", "echo one >out.txt\n")
	w.put("repo/forge.sh", forgeries)
	w.put("repo/.workflow/specs/pipe.yaml", `
workflow: {id: pipe}
steps:
  - {id: A, agent: {type: writer, prompt: write}, outputs: [out.txt], gate: G}
  - {id: F, agent: {type: forger, prompt: forge}, needs: [H], signal: {type: sentinel_file}, next_step: DONE}
  - {id: H, run: [sh, -c, "until [ -e start ]; do sleep 0.05; done"], needs: [], next_step: DONE}
gates:
  - {id: G, reviewer: {level: human, approvers: [ann@example.org]}, on_pass: {next_step: DONE}}
`)
	w.commit()
	ids := repoState(t, w)
	w.env = append(w.env, "R="+w.repo, "W="+w.work, "S="+filepath.Join(state, ids))
	w.do("sh", "-c", "mkdir -p $HOME/.ssh && ssh-keygen -q -t ed25519 -N '' -C '' -f $HOME/.ssh/id_ann")
	w.do("sh", "-c", w.bin+" keys add $HOME/.ssh/id_ann.pub --name ann@example.org")
	if out := w.do(w.bin, "keys", "check"); !strings.Contains(out, "has no passphrase; the sandbox hides it from agents") {
		t.Errorf("of a key in the home folder: %s", out)
	}
	w.do(w.bin, "watch", "add")
	w.boot()
	w.serves()
	w.do(w.bin, "start", "pipe")
	eventually(t, "the gate asks", func() bool { return strings.Contains(w.do(w.bin, "status", "pipe-1"), "? G") })
	w.do("sh", "-c", w.bin+" pass G --unsigned -o carried && "+w.bin+" pass G -o anns && touch start")
	eventually(t, "the forger is done", func() bool { _, err := os.Stat(filepath.Join(w.repo, "done")); return err == nil })
	eventually(t, "what it handed in is told", func() bool {
		said, _ := exec.Command("grep", "-r", "an agent answers no gate", filepath.Join(w.repo, ".workflow/signals/rejected")).CombinedOutput()
		return strings.Count(string(said), "\n") >= 3 // all that it handed in
	})
	if out := w.do(w.bin, "status", "pipe-1"); !strings.Contains(out, "? G") {
		t.Errorf("the gate asks no more:\n%s", out)
	}
	for _, f := range []string{"stolen", "list"} {
		if data, err := os.ReadFile(filepath.Join(w.repo, f)); err == nil && len(data) > 0 {
			t.Errorf("%s was read: %q", f, data)
		}
	}
	if out := w.do(w.bin, "keys", "ls"); strings.Count(out, "SHA256:") != 1 {
		t.Errorf("the list: %s", out)
	}
	// The same text, handed in by a person, counts.
	w.do(w.bin, "pass", "G", "--signed", "anns")
	w.do("sh", "-c", "touch go")

	// A key in the checkout is in every agent's reach, unless it has a passphrase.
	w.do("sh", "-c", "ssh-keygen -q -t ed25519 -N '' -C '' -f bob && ssh-keygen -q -t ed25519 -N secret -C '' -f carl")
	w.do(w.bin, "keys", "add", "bob.pub", "--name", "bob@example.org")
	w.do(w.bin, "keys", "add", "carl.pub", "--name", "carl@example.org")
	out := w.do(w.bin, "keys", "check")
	if !strings.Contains(out, "bob has no passphrase and agents can reach it (the sandbox shows them "+w.repo) {
		t.Errorf("of a key in the checkout: %s", out)
	}
	if strings.Contains(out, "carl has no passphrase") {
		t.Errorf("of a key with a passphrase: %s", out)
	}
}

// repoState is the repo's id: the name of its state folder.
func repoState(t *testing.T, w *sandbox) string {
	t.Helper()
	p, err := workspace.At(t.Context(), console.New(w.env, nil, os.Stderr, os.Stderr), w.repo)
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}

// TestSignedInTerminal: the passphrase is asked for where the person sits, and a wrong one signs nothing.
func TestSignedInTerminal(t *testing.T) {
	needsKeygen(t)
	w, sluice := gated(t)
	w.write(".workflow/specs/w.yaml", "workflow: {id: w}\nsteps:\n  - {id: X-1, run: [touch, made], gate: G}\ngates:\n  - {id: G, reviewer: {level: human, approvers: [ann@example.org]}, on_pass: {next_step: DONE}}\n")
	key := filepath.Join(filepath.Dir(w.dir), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-C", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code, out := w.binary(sluice, "keys", "add", key+".pub", "--name", "ann@example.org"); code != 0 || strings.Contains(out, "mind:") {
		t.Fatalf("%d %s", code, out)
	}
	w.serve(sluice)
	if code, out := w.binary(sluice, "start", "w"); code != 0 {
		t.Fatal(out)
	}
	w.until(`\? G`, "status", "w-1")
	win := w.inTerminal(120, 24, sluice+" pass G; "+sluice+" pass G -m good")
	win.sees(`^signing with the key of ann@example.org \(ed25519\): pass of G, round 1 of w-1`)
	win.sees(`Enter passphrase`)
	win.types("wrong", "Enter")
	win.sees(`ssh-keygen did not sign`)
	win.sees(`(?s)did not sign.*Enter passphrase`)
	win.types("secret", "Enter")
	win.sees(`passed by ann@example.org \(command of .*, signed\): good`)
	win.sees(`^rc=0`)
}
