//go:build linux || darwin

package agents

import (
	"strings"
	"testing"
)

// TestAFaultTooLongForItsRecord: what keeps a command from starting is told,
// however long its name and its PATH are, and is known to the next daemon.
func TestAFaultTooLongForItsRecord(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Spec){
		"name": func(s *Spec) { s.Argv = []string{"/" + strings.Repeat("x", 2*maxRecordBytes)} },
		"path": func(s *Spec) { s.Env[0] = "PATH=/" + strings.Repeat("<", maxRecordBytes) },
		"byte": func(s *Spec) { s.Argv = []string{"/" + strings.Repeat("\x01", maxRecordBytes/2)} },
		"cwd":  func(s *Spec) { s.Cwd = "/" + strings.Repeat("\x01", maxRecordBytes) },
	} {
		spec := testSpec(t, "")
		change(&spec)
		if e := wait(t, ensure(t, newRunner(), spec)); e.NotStarted == "" || e.Lost {
			t.Errorf("%s: lost %v, not started %.80q", name, e.Lost, e.NotStarted)
		}
		p, err := newRunner().Adopt(spec.PidFile, "")
		if err != nil {
			t.Errorf("%s: adopted: %v", name, err)
		} else if e := wait(t, p); e.NotStarted == "" || e.Lost {
			t.Errorf("%s: adopted: lost %v, not started %.80q", name, e.Lost, e.NotStarted)
		}
	}
}
