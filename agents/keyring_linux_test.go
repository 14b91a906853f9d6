package agents

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/agents/sandbox"
	"sluice/tools/conform"
)

const keyringArg = "keyring"

// keyringMain prints this process's session keyring, and whether it has the key of that name.
func keyringMain(name string) int {
	runtime.LockOSThread()
	id, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
	key, serr := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", name, 0)
	fmt.Printf("keyring %d %v\nkey %t\n", id, err, serr == nil && key != 0)
	return 0
}

// TestKeyring: each sandbox starts with a new, empty session keyring; without a sandbox a launch
// has the daemon's. The sandbox here is a program that only reports.
func TestKeyring(t *testing.T) {
	conform.Rule(t, "4-trust calls", "no key of the person's session is a launch's")
	if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); err != nil {
		t.Skipf("kernel: no keys: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // and never unlocked: the keyring goes with the thread
	if err := freshKeyring(); err != nil {
		t.Fatal(err)
	}
	name := "sluice-test-" + rand.Text()
	if _, err := unix.AddKey("user", name, []byte("a secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
		t.Skipf("kernel: no keys: %v", err)
	}
	r := New(Options{Shim: shimCommand(self), Warm: 1}) // one shim for all: it inherits the key
	defer r.Close()
	seen := map[string]bool{}
	for i, held := range []bool{false, true, true, false} {
		s := testSpec(t, "unused")
		s.Argv = []string{self, keyringArg, name}
		if held {
			s.Cage = &sandbox.Start{Argv: s.Argv, Env: s.Env}
			s.Argv, s.Env = nil, nil
		}
		exit := wait(t, ensure(t, r, s))
		out := content(t, filepath.Join(s.Dir, stdoutFile))
		ring, _, _ := strings.Cut(out, "\n")
		if exit.Code != 0 || !strings.Contains(ring, "<nil>") || strings.Contains(out, "key true") == held || held && seen[ring] {
			t.Errorf("launch %d, held %t: %+v\n%s", i, held, exit, out)
		}
		seen[ring] = true
	}
}
