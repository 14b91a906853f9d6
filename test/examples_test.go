//go:build linux

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/tools/conform"
)

// TestExamples does what the README of each example says, word for word, and looks whether all that was started was
// completed. A person would look how things stand before the next command, so it waits for that between two.
func TestExamples(t *testing.T) {
	conform.Rule(t, "004 §6 experiments", "the commands of each example's README carry it to its end")
	readmes, err := filepath.Glob("../examples/exp-*/README.md")
	if err != nil || len(readmes) < 7 {
		t.Fatalf("%d examples: %v", len(readmes), err)
	}
	for _, readme := range readmes {
		dir := filepath.Dir(readme)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			w := newSandbox(t, quietSettings)
			w.do("cp", "-R", abs(dir)+"/.", w.repo)
			w.commit()
			w.do(w.bin, "watch", "add")
			w.boot()
			w.serves()
			for _, line := range commandsOf(t, readme) {
				t.Log(line, "\n", w.do("sh", "-c", line))
				w.atRest()
			}
			st, _ := w.status()
			if len(st.Runs) == 0 {
				t.Error("nothing was run")
			}
			for _, r := range st.Runs {
				if r.Phase != "completed" {
					t.Errorf("%s is %s: %s", r.ID, r.Phase, r.EndWhy)
				}
			}
			w.do(w.bin, "audit", "verify")
		})
	}
}

// quietSettings are those of a machine without a desktop; all else is as shipped.
const quietSettings = "notify: {desktop: false}\n"

// TestExamplesReadme does what the README of all examples says first.
func TestExamplesReadme(t *testing.T) {
	t.Parallel()
	w := newSandbox(t, quietSettings)
	script := strings.Join(commandsOf(t, "../examples/README.md"), "\n")
	if !strings.Contains(script, "/tmp/exp-4") {
		t.Fatalf("the README has other commands now:\n%s", script)
	}
	w.repo = abs("..")
	out := w.do("sh", "-e", "-c", strings.ReplaceAll(script, "/tmp/exp-4", filepath.Join(w.work, "exp-4")))
	if !strings.Contains(out, "exp-4-retry-1 completed") {
		t.Errorf("it says:\n%s", out)
	}
}

// commandsOf are the commands that a README shows: its lines that are set in by four blanks.
func commandsOf(t *testing.T, readme string) []string {
	t.Helper()
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			out = append(out, command)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s shows no command", readme)
	}
	return out
}

// serves waits until the daemon serves the repo.
func (w *sandbox) serves() {
	w.t.Helper()
	eventually(w.t, "the daemon serves", func() bool { _, ok := w.status(); return ok })
}

// waiting reports whether the inbox has files that were not taken in yet.
func (w *sandbox) waiting() bool {
	files, err := os.ReadDir(filepath.Join(w.repo, ".workflow/signals"))
	return err == nil && slices.ContainsFunc(files, func(f os.DirEntry) bool { return !f.IsDir() })
}

// atRest waits until every live run waits for a person, or for what a person has to start.
func (w *sandbox) atRest() {
	w.t.Helper()
	var last daemon.Status
	eventually(w.t, "everything waits for a person", func() bool {
		st, ok := w.status()
		last = st
		return ok && !w.waiting() && !slices.ContainsFunc(st.Runs, func(r daemon.RunStatus) bool {
			return r.Live() && (len(r.Waits) == 0 || slices.ContainsFunc(r.Waits, func(wait daemon.Wait) bool {
				return !slices.Contains([]string{"human", "offer", "need"}, wait.Kind)
			}))
		})
	})
	if last.Stalled != "" {
		w.t.Errorf("stalled: %s", last.Stalled)
	}
}

// TestDemo runs what `make demo` runs: with CI set, and where there is no terminal to ask a person on.
func TestDemo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"yes":         {[]string{"demo", "--yes"}, []string{"--yes answers for you at the last gate", "a person would decide now; --yes writes"}},
		"no terminal": {[]string{"demo"}, []string{"There is no terminal to ask you on, so the demo answers for you at the last gate", "a person would decide now; the demo writes"}},
	} {
		t.Run(name, func(t *testing.T) { playDemo(t, c.args, c.says) })
	}
}

func playDemo(t *testing.T, args, says []string) {
	w := newSandbox(t, "")
	w.repo = w.work
	cmd := exec.Command(w.bin, args...) // standard input is the null device, output a pipe
	if err := os.Mkdir(filepath.Join(w.work, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.Dir, cmd.Env = w.work, append(w.env, "TMPDIR="+filepath.Join(w.work, "tmp"))
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range append(says, "phase-4-search-index-1 completed", "ok  journal", "ok  .workflow/audit/phase-4-search-index.log") {
		if !strings.Contains(string(out), want) {
			t.Errorf("the demo does not say %q:\n%s", want, out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.work, "tmp", "*")); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
	eventually(t, "no process of it is left", func() bool { return len(processesOf(w.work)) == 0 })
	t.Logf("the demo took %s", took.Round(time.Second)) // beside all other tests; by itself some 10 s
}
