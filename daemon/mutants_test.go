package daemon

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// edit is a piece of a file's text and what stands there instead. Old has to occur exactly once, so that the table
// cannot rot.
type edit struct{ file, old, new string }

// mutant is one way to get the loop wrong.
type mutant struct {
	name  string
	edits []edit
}

const (
	mutantSeeds  = "2000" // histories in which a mutant has to be found
	mutantsShort = 2      // how many a plain `go test` tries; SLUICE_MUTANTS=all tries all, SLUICE_MUTANTS=name that one
)

// mutants are the wrong loops that the simulation has to find.
func mutants() []mutant {
	repo, scan, end, effects, core := "daemon/repo.go", "daemon/scan.go", "daemon/repo_end.go", "daemon/effects.go", "daemon/core.go"
	commit := "	done, err := r.commit(ctx)\n	if err != nil {\n		return err\n	}\n"
	return []mutant{
		{"no sync", []edit{{"journal/log.go", "	if err := l.file.Sync(); err != nil {\n		return head, nil, l.syncFailed(err)\n	}\n	l.reserve()\n	return head, marks, nil", "	return head, marks, nil"}}},
		{"effects are started before the commit", []edit{{repo, commit, "	r.act(now)\n" + commit}}},
		{"the reply comes before the commit", []edit{{repo, commit, "	for _, w := range replies {\n		w.reply <- doneReply{facts: w.facts}\n	}\n	replies = nil\n" + commit}}},
		{"effects are started only at the moment of the facts", []edit{{repo, "	r.act(now)\n	return nil\n", "	if len(done) > 0 {\n		r.act(now)\n	}\n	return nil\n"}}},
		{"an effect has no key", []edit{{effects, "if d.on[name] != nil {", "if false {"}, {effects, "		if before != nil {\n			<-before.done\n		}\n", "		_ = before\n"}}},
		{"run and stop of one process overlap", []edit{{effects, "		if before != nil {\n			<-before.done\n		}\n", "		_ = before\n"}}},
		{"the watch for a commit waits for the process", []edit{{effects, "if e.Kind == engine.DoRun || e.Kind == engine.DoStop {", "if true {"}}},
		{"a scan began at its end", []edit{{scan, "r.post(item{scan: seen, began: began,", "r.post(item{scan: seen, began: r.opt.Now().Add(0 * r.opt.Now().Sub(began)),"}}},
		{"a failed scan closes windows", []edit{{scan, "		if err != nil { // not a scan: it closes nothing\n", "		if false {\n"}}},
		{"what was moved away during a scan is seen again", []edit{{scan, "file && r.moved[f.ID]", "file && false && r.moved[f.ID]"}}},
		{"a file of the inbox is taken in twice", []edit{{"engine/decide_signal.go", "if ev.ID != \"\" && d.s.Moves[ev.ID] != nil {", "if false {"}}},
		{"a snapshot holds what is not journaled", []edit{{repo, commit, "	if r.core.snapshotDue() {\n		r.snapshot()\n	}\n" + commit}, {core, "if len(c.pending) > 0 || c.since == 0 {", "if c.since == 0 {"}}},
		{"a snapshot without sources", []edit{{core, "Sources: c.sources}", "Sources: nil}"}}},
		{"a commit's error is swallowed", []edit{{repo, commit, "	done, err := r.commit(ctx)\n	_ = err\n"}}},
		{"a failed sync is tried again", []edit{{repo, "if !errors.Is(err, journal.ErrStalled) {", "if false {"}}},
		{"what cannot be written is dropped", []edit{{repo, "		r.setStall(err.Error())\n", "		r.core.pending = nil\n		return all, nil\n"}}},
		{"what was read back is not synced", []edit{{"journal/open.go", "	return l.settle()\n", "	return nil\n"}}},
		{"the time away is not told", []edit{{repo, "engine.Woken{From: r.left(now), To: now}}}\n", "engine.Woken{From: now, To: now}}}\n"}}},
		{"a sleep of the machine is not told", []edit{{repo, "if woken, slept := r.slept(now); slept {", "if woken, slept := r.slept(now); false && slept {"}}},
		{"the time away is forgotten before it is journaled", []edit{{repo, "	batch := []item{{event: engine.Woken", "	r.serve(now)\n	batch := []item{{event: engine.Woken"}}},
		{"what has landed and is still owed is forgotten", []edit{{effects, "		f.late = append(f.late, who)\n	}\n	if l", "	}\n	if l"}}},
		{"what waits to be tried again is forgotten", []edit{{effects, "			f.late = append(f.late, who)\n			if next.IsZero() || at.Before(next) {\n				next", "			if next.IsZero() || at.Before(next) {\n				next"}}},
		{"what a run owes is looked at only where something landed", []edit{{effects, "{changed, late}", "{changed[:0], late}"}}},
		{"an effect that failed is tried again at once", []edit{{effects, "now.Before(at) {", "false {"}}},
		{"hints are believed: nothing is scanned again", []edit{{end, "	r.beat()\n	r.scan(r.fl.ctx)\n", "	r.beat()\n"}}},
		{"a late veto leaves the branch as it is", []edit{{"engine/decide_human.go", "		d.takeBack(r, vetoed)\n", "		_ = vetoed\n"}}},
		{"files go back while a process is at work there", []edit{{"engine/owed.go", "w.Kind == WriteRewind && s.inUse(", "false && s.inUse("}}},
		{"a move of a branch that was given up goes on beside the next", []edit{{effects, "return \"branch \" + e.Tree", "return e.Name()"}}},
		// Wrong only where the machine sleeps or its clock is set.
		{"what was seen before the clock was set back is seen", []edit{{repo, "wall.Before(r.ticked) {", "now.Before(wall) && wall.Before(r.ticked) {"}}},
		{"an effect rests by the clock on the wall", []edit{{effects, "d.last[name].Add(again);", "d.last[name].Add(again).Round(0);"}}},
		{"a failed scan rests by the clock on the wall", []edit{{scan, "r.opt.Now().Add(again)", "r.opt.Now().Add(again).Round(0)"}}},
		{"a start counts from what a clock that was set back has dated", []edit{{repo, " && last.Sub(at) <= 2*aliveEvery", ""}}},
	}
}

// TestMutants puts each wrong loop into a copy of what it is made of and wants the simulation there to fail.
func TestMutants(t *testing.T) {
	which := os.Getenv("SLUICE_MUTANTS")
	if os.Getenv("SLUICE_MUTANT") != "" || which == "" && testing.Short() {
		t.Skip("each mutant takes some seconds")
	}
	all := mutants()
	for i, m := range all {
		for _, e := range m.edits {
			src, err := os.ReadFile(filepath.Join("..", e.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(src, []byte(e.old)); n != 1 {
				t.Errorf("mutant %q: its text occurs %d times in %s, want once: mend the table", m.name, n, e.file)
			}
		}
		if which == "" && i%(len(all)/mutantsShort+1) != 1 || which != "" && which != "all" && which != m.name {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			out, err := m.try(t)
			switch {
			case err == nil:
				t.Errorf("not found in %s seeds", mutantSeeds)
			case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
				t.Errorf("it does not build:\n%s", out)
			default:
				t.Logf("found: %s", faultOf(out))
			}
		})
	}
}

// try runs the simulation in a copy of the loop and what it is made of.
func (m mutant) try(t *testing.T) (string, error) {
	dir := t.TempDir()
	parts := []string{"go.mod", "go.sum", "daemon/*.go", "daemon/testdata/*", "engine/*.go", "journal/*.go", "internal/atomicfile/*.go",
		"internal/strictjson/*.go", "internal/conform/*.go"}
	for _, part := range parts {
		files, err := filepath.Glob(filepath.Join("..", part))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", part, err)
		}
		for _, f := range files {
			if err := m.copy(f, dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command("go", "test", "-trimpath", "-vet=off", "-count=1", "-timeout=600s", "-run", "TestSimulation$", "./daemon")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SIM_CRASHES=1000000", "SIM_SEEDS="+mutantSeeds, "SIM_SEED=", "SLUICE_MUTANT=1", "SLUICE_CONFORM=", "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m mutant) copy(file, dir string) error {
	name := filepath.ToSlash(strings.TrimPrefix(file, ".."+string(filepath.Separator)))
	if strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "daemon/") {
		return nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, e := range m.edits {
		if e.file == name {
			src = bytes.Replace(src, []byte(e.old), []byte(e.new), 1)
		}
	}
	to := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, src, 0o644)
}

// faultOf is the line that tells what a mutant was found by.
func faultOf(out string) string {
	lines := strings.Split(out, "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "_test.go:") || strings.Contains(l, "panic:") })
	return fmt.Sprintf("%.240s", strings.TrimSpace(lines[max(i, 0)]))
}
