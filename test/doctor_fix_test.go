//go:build linux

package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/fault"
	"sluice/tools/conform"
)

// TestDoctorMends: what doctor can fix is fixed after a yes, and checked again; without a person it
// says how to fix it.
func TestDoctorMends(t *testing.T) {
	conform.Rule(t, "001 cli.doctor", "what is wrong, with a mend")
	w := newWorld(t, true)
	w.agentsOnPath("claude", "codex")
	home := filepath.Join(filepath.Dir(w.dir), "state", "sluice")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(home, 0o755); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	code, out, errs := w.sluice("doctor")
	if code != fault.ExitFailed || !strings.Contains(out, "can be read by others") || !strings.Contains(errs, "2 faults can be fixed here: run `sluice doctor --yes`") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	if info, _ := os.Stat(home); info.Mode().Perm() != 0o755 {
		t.Error("it was fixed without a yes")
	}
	code, out, errs = w.sluice("doctor", "--yes")
	_, after, _ := strings.Cut(out, "fixed  workflow")
	if strings.Contains(after, "can be read by others") || strings.Contains(after, "no .workflow/ here") || !strings.Contains(after, "specs") {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	if info, _ := os.Stat(home); info.Mode().Perm() != 0o700 {
		t.Errorf("the state folder is %v", info.Mode())
	}
	if code, out, errs := w.sluice("validate"); code != 0 {
		t.Errorf("what was laid out: %s %s", out, errs)
	}
}
