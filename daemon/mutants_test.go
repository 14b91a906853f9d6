package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/tools/anchor"
)

// edit is a piece of the text of a declaration of package dir, and what stands there instead. Old
// has to occur exactly once in it, so that the table cannot rot.
type edit struct{ dir, decl, old, new string }

// mutant is one way to get the loop wrong.
type mutant struct {
	name  string
	edits []edit
}

const (
	mutantSeeds  = "2000" // histories in which a mutant has to be found
	mutantsShort = 1      // how many a plain `go test` tries; SLUICE_MUTANTS=all tries all, SLUICE_MUTANTS=name that one
)

// mutants are the wrong loops that the simulation has to find.
func mutants() []mutant {
	commit := "	done, err := r.commit(ctx)\n	if err != nil {\n		return err\n	}\n"
	return []mutant{
		{"no sync", []edit{{"journal", "Log.writeFile", "	if err := l.file.Sync(); err != nil {\n		return l.syncFailed(err)\n	}\n", ""}}},
		{"effects are started before the commit", []edit{{"daemon", "Repo.turn", commit, "	r.act(now)\n" + commit}}},
		{"the reply comes before the commit", []edit{{"daemon", "Repo.turn", commit, "	for _, w := range replies {\n		w.reply <- doneReply{facts: w.facts}\n	}\n	replies = nil\n" + commit}}},
		{"effects are started only at the moment of the facts", []edit{{"daemon", "Repo.turn", "	r.act(now)\n	return nil\n", "	if len(done) > 0 {\n		r.act(now)\n	}\n	return nil\n"}}},
		{"an effect has no key", []edit{{"daemon", "flights.settle", "if d.on[name] != nil {", "if false {"}, {"daemon", "flights.start", "		if before != nil {\n			<-before.done\n		}\n", "		_ = before\n"}}},
		{"run and stop of one process overlap", []edit{{"daemon", "flights.start", "		if before != nil {\n			<-before.done\n		}\n", "		_ = before\n"}}},
		{"the watch for a commit waits for the process", []edit{{"daemon", "lane", "if e.Kind == engine.DoRun || e.Kind == engine.DoStop {", "if true {"}}},
		{"a scan began at its end", []edit{{"daemon", "scans.read", "s.post(item{scan: seen, began: began,", "s.post(item{scan: seen, began: s.opt.Now().Add(0 * s.opt.Now().Sub(began)),"}}},
		{"a failed scan closes windows", []edit{{"daemon", "scans.read", "		if err != nil { // not a scan: it closes nothing\n", "		if false {\n"}}},
		{"what was moved away during a scan is seen again", []edit{{"daemon", "scans.take", "file && s.moved[f.ID]", "file && false && s.moved[f.ID]"}}},
		{"a file of the inbox is taken in twice", []edit{{"engine", "signalling.fileSeen", "if ev.ID != \"\" && d.s.Moves[ev.ID] != nil {", "if false {"}}},
		{"a snapshot holds what is not journaled", []edit{{"daemon", "Repo.turn", commit, "	if r.core.snapshotDue() {\n		r.snapshot()\n	}\n" + commit}, {"daemon", "core.save", "if len(c.pending) > 0 || c.since == 0 {", "if c.since == 0 {"}}},
		{"a snapshot without sources", []edit{{"daemon", "core.save", "Sources: c.sources}", "Sources: nil}"}}},
		{"a commit's error is swallowed", []edit{{"daemon", "Repo.turn", commit, "	done, err := r.commit(ctx)\n	_ = err\n"}}},
		{"a failed sync is tried again", []edit{{"daemon", "Repo.commit", "if !errors.Is(err, journal.ErrStalled) {", "if !errors.Is(err, journal.ErrStalled) && false {"}}},
		{"what cannot be written is dropped", []edit{{"daemon", "Repo.commit", "		r.troubles.setStall(err)\n", "		r.core.pending = nil\n		return all, nil\n"}}},
		{"what was read back is not synced", []edit{{"journal", "Log.open", "	return l.settle()\n", "	return nil\n"}}},
		{"the time away is not told", []edit{{"daemon", "Repo.start", "From: r.left(now), To: now,", "From: now, To: now,"}}},
		{"a sleep of the machine is not told", []edit{{"daemon", "Repo.turn", "if woken, slept := r.slept(now); slept {", "if woken, slept := r.slept(now); false && slept {"}}},
		{"the time away is forgotten before it is journaled", []edit{{"daemon", "Repo.start", "	batch := []item{{event: woken", "	r.serve(now)\n	batch := []item{{event: woken"}}},
		{"what has landed and is still owed is forgotten", []edit{{"daemon", "flights.land", "		f.late = append(f.late, who)\n	}\n	if l", "	}\n	if l"}}},
		{"what waits to be tried again is forgotten", []edit{{"daemon", "flights.reconcile", "			f.late = append(f.late, who)\n			if next.IsZero() || at.Before(next) {\n				next", "			if next.IsZero() || at.Before(next) {\n				next"}}},
		{"what a run owes is looked at only where something landed", []edit{{"daemon", "flights.reconcile", "{changed, late}", "{changed[:0], late}"}}},
		{"an effect that failed is tried again at once", []edit{{"daemon", "flights.settle", "now.Before(at) {", "false {"}}},
		{"hints are believed: nothing is scanned again", []edit{{"daemon", "Repo.rescan", "	r.beat()\n	r.scans.scan(r.fl.ctx)\n", "	r.beat()\n"}}},
		{"a late veto leaves the branch as it is", []edit{{"engine", "signalling.decide", "		d.takeBack(r, vetoed)\n", "		_ = vetoed\n"}}},
		{"files go back while a process is at work there", []edit{{"engine", "State.owedByRun", "w.Kind == WriteRewind && s.inUse(", "false && s.inUse("}}},
		{"a move of a branch that was given up goes on beside the next", []edit{{"daemon", "lane", "return \"branch \" + e.Tree", "return e.Name()"}}},
		{"what is armed is forgotten when no run uses it", []edit{{"daemon", "core.unlearn", "		used[a.Digest] = true\n", "		_ = a\n"}}},
		{"a start knows no text that was armed", []edit{{"daemon", "core.fold", "		case engine.TriggersArmed:\n			c.learn(f.Digest, f.Source)\n", ""}}},
		{"a firing is read for another text than the armed one", []edit{{"daemon", "orders.job", "c.spec(a.Digest), a.Digest, maps", "c.spec(a.Digest), \"\", maps"}}},
		{"a firing is forgotten at its record", []edit{{"engine", "owedByArmed", "	if len(a.Firings) > 0 &&", "	if len(a.Firings) > 1 &&"}}},
		{"a key fires again", []edit{{"engine", "triggering.fired", "	case a.Known.Has(t.ID, ev.Key):\n		return \"\"\n", ""}}},
		{"the result of a replaced launch counts for the next", []edit{{"engine", "running.ended", "	if r == nil || r.Procs.Of(ev.Key) == nil {\n", "	for i := 0; r != nil && i < len(r.Procs); i++ {\n		if p := r.Procs[i].Key; p > ev.Key && p[:len(p)-1] == ev.Key[:len(ev.Key)-1] {\n			ev.Key = p\n		}\n	}\n	if r == nil || r.Procs.Of(ev.Key) == nil {\n"}}},
		{"what another machine may have sent is sent again", []edit{{"daemon", "orders.job", "Found: o.found[e.Key]}", "Found: false && o.found[e.Key]}"}}},
		// Wrong only where the machine sleeps or its clock is set. Since when nobody serves:
		// TestSinceWhenNobodyServes.
		{"what was seen before the clock was set back is seen", []edit{{"daemon", "Repo.turn", "wall.Before(r.ticked) {", "now.Before(wall) && wall.Before(r.ticked) {"}}},
		{"an effect rests by the clock on the wall", []edit{{"daemon", "flights.settle", "d.last[name].Add(again);", "d.last[name].Add(again).Round(0);"}}},
		{"a failed scan rests by the clock on the wall", []edit{{"daemon", "scans.read", "s.opt.Now().Add(again)", "s.opt.Now().Add(again).Round(0)"}}},
	}
}

// TestMutants puts each wrong loop into a copy of what it is made of and wants the simulation there
// to fail.
func TestMutants(t *testing.T) {
	which := os.Getenv("SLUICE_MUTANTS")
	if os.Getenv("SLUICE_MUTANT") != "" || which == "" && testing.Short() {
		t.Skip("each mutant takes some seconds")
	}
	all, parts := mutants(), partsOfLoop(t)
	for i, m := range all {
		changed, err := m.changed()
		if err != nil {
			t.Errorf("mutant %q: %v", m.name, err)
			continue
		}
		if which == "" && i%(len(all)/mutantsShort+1) != 1 || which != "" && which != "all" && which != m.name {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			out, err := try(t, parts, changed)
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

// changed returns the files that the mutant's edits change, by path.
func (m mutant) changed() (map[string][]byte, error) {
	by := map[string][]anchor.Edit{}
	for _, e := range m.edits {
		by[e.dir] = append(by[e.dir], anchor.Edit{Decl: e.decl, Old: e.old, New: e.new})
	}
	out := map[string][]byte{}
	for dir, edits := range by {
		files, err := anchor.Apply(filepath.Join("..", dir), edits)
		if err != nil {
			return nil, err
		}
		for base, src := range files {
			out[dir+"/"+base] = src
		}
	}
	return out, nil
}

// partsOfLoop are the files that the loop and its tests are made of, as patterns from the top.
func partsOfLoop(t *testing.T) []string {
	t.Helper()
	parts := []string{"go.mod", "go.sum", "internal/schema/_jsonschema/go.mod", "daemon/testdata/*"}
	deps, err := exec.Command("go", "list", "-deps", "-test", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dep := range strings.Lines(string(deps)) {
		if pkg, ours := strings.CutPrefix(strings.TrimSpace(dep), "sluice/"); ours && !strings.ContainsAny(pkg, " .") {
			parts = append(parts, pkg+"/*.go")
		}
	}
	return parts
}

// try runs the simulation in a copy of the loop and what it is made of, with the changed files.
func try(t *testing.T, parts []string, changed map[string][]byte) (string, error) {
	dir := t.TempDir()
	for _, part := range parts {
		files, err := filepath.Glob(filepath.Join("..", part))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", part, err)
		}
		for _, f := range files {
			if err := copyTo(f, dir, changed); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command("go", "test", "-trimpath", "-vet=off", "-count=1", "-timeout=600s", "-run", "TestSimulation$", "./daemon")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SIM_CRASHES=1000000", "SIM_SEEDS="+mutantSeeds, "SIM_SEED=", "SLUICE_MUTANT=1", "SLUICE_CONFORM=", "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOGC=400")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func copyTo(file, dir string, changed map[string][]byte) error {
	name := filepath.ToSlash(strings.TrimPrefix(file, ".."+string(filepath.Separator)))
	if strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "daemon/") {
		return nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if with, ok := changed[name]; ok {
		src = with
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
