package agents

import (
	"path/filepath"
	"testing"
)

// TestSealed: what a command runs cannot write to its stdout beside it. A pipe can be opened by its name in /proc.
func TestSealed(t *testing.T) {
	t.Parallel()
	const script = `echo said; (exec >/dev/null 2>&1; echo forged >/proc/$$/fd/1); head -c 1000000 /dev/zero | tr '\0' x; exit 3`
	spec := testSpec(t, script)
	spec.Sealed = true
	e := wait(t, ensure(t, newRunner(), spec))
	said := content(t, filepath.Join(spec.Dir, stdoutFile))
	if e.Code != 3 || len(said) != len("said\n")+1_000_000 || said[:5] != "said\n" {
		t.Errorf("code %d, %d bytes: %.40q", e.Code, len(said), said)
	}
}
