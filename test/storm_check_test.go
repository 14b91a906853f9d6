//go:build linux

package test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/journal"
	"sluice/tools/conform"
)

func TestClusterStorm(t *testing.T) {
	conform.Rule(t, "13-cluster storm", "servers, workers and leaders killed, links cut, a disk full, clocks off by a minute: no outcome lost, doubled or changed, no key accepted twice")
	t.Parallel()
	if !ownMounts(t, "--net") {
		return
	}
	runs := timesOf(t, "SLUICE_CLUSTER_RUNS", stormRuns)
	s := newStorm(t, seedOf(t), runs, timesOf(t, "SLUICE_CLUSTER_WORKERS", stormWorkers))
	rest := stormRest
	if runs >= stormMany { // with the shorter one nobody leads for most of the time
		rest *= 4
	}
	began, next := time.Now(), time.Now()
	for s.begun() < runs || time.Since(began) < time.Duration(min(runs, stormMany))*time.Second {
		if s.heals(false); time.Now().After(next) && s.begun() > 0 {
			s.harms()
			next = time.Now().Add(time.Duration(s.rnd.Int64N(int64(rest))))
		}
		s.person(runs)
		time.Sleep(pollEvery)
	}
	s.heals(true)
	defer func() {
		if t.Failed() {
			for _, m := range s.daemons {
				out, _ := m.try(m.bin, "status")
				t.Logf("%s: %s", m.name, out)
			}
		}
	}()
	within(t, endMost, "every run ends", func() bool { return s.person(runs) })
	s.check()
	t.Logf("%d runs on %d workers in %s, up to epoch %d; %v", len(s.people.runs), len(s.workers),
		time.Since(began).Truncate(time.Second), s.leads, s.count)
}

// check holds what is there at the end against what was acknowledged, and against what the agents did.
func (s *storm) check() {
	t := s.t
	t.Helper()
	for _, m := range s.daemons {
		m.sameAsStream(s.servers, s.id)
		if out, err := m.try(m.bin, "audit", "verify", "--cluster", s.servers.URL()); err != nil {
			t.Errorf("%s: %v\n%s", m.name, err, out)
		}
	}
	file := filepath.Join(s.daemons[0].state(), journal.FileName)
	j, faults, err := readRecord(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(faults, s.people.heldAgainst(j)...) {
		t.Error(f)
	}
	for run := range s.seen {
		if !j.runs[run] {
			t.Errorf("%s was seen, and is not in the record", run)
		}
	}
	said, phases := s.outcomes(file)
	launches := s.ledger()
	for run := range j.runs {
		if phases[run] != "completed" {
			t.Errorf("%s is %q", run, phases[run])
		}
		s.landed(run, said)
	}
	s.accepted()
	t.Logf("%d records, %d runs, %d launches, %d of them counted", j.last, len(j.runs), launches, len(said))
}

// outcomes reads from the journal which launch's word counted for each attempt, and how runs ended.
func (s *storm) outcomes(file string) (said, phases map[string]string) {
	s.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	said, phases = map[string]string{}, map[string]string{}
	for line := range bytes.Lines(data) {
		var l struct {
			Facts []struct {
				Kind, Run, Step, Summary, Phase, Why string
				N                                    int
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			s.t.Fatal(err)
		}
		for _, f := range l.Facts {
			switch at := fmt.Sprintf("%s/%s#%d", f.Run, f.Step, f.N); f.Kind {
			case "step_signalled":
				if said[at] != "" {
					s.t.Errorf("%s has two outcomes: %s and %s", at, said[at], f.Summary)
				}
				said[at] = f.Summary
			case "work_lost": // its word is void
				delete(said, at)
			case "run_ended":
				if phases[f.Run] != "" {
					s.t.Errorf("%s has ended twice", f.Run)
				}
				if phases[f.Run] = f.Phase; f.Why != "" {
					s.t.Errorf("%s: %s", f.Run, f.Why)
				}
			}
		}
	}
	return said, phases
}

// ledger counts the launches. A launch's token is that of its key, so each is there once.
func (s *storm) ledger() int {
	s.t.Helper()
	data, err := os.ReadFile(s.ran)
	if err != nil {
		s.t.Fatal(err)
	}
	seen := map[string]string{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			s.t.Errorf("the ledger has %q", line)
			continue
		}
		if seen[f[1]] != "" {
			s.t.Errorf("one key was launched twice: %s, %s", seen[f[1]], f[0])
		}
		seen[f[1]] = f[0]
	}
	return len(seen)
}

// landed holds that the work of a run is on the branch of one machine at least, that of each step from
// the launch whose word counted, and in no branch twice.
func (s *storm) landed(run string, said map[string]string) {
	s.t.Helper()
	found := 0
	for _, m := range s.daemons {
		log := m.do("git", "log", "--format=%H", "main", "--", "out/"+run)
		switch strings.Count(log, "\n") {
		case 0:
			continue
		case 1:
		default:
			s.t.Errorf("%s has landed several times on %s", run, m.name)
		}
		found++
		work := map[string]string{}
		for line := range strings.Lines(m.do("git", "show", "main:out/"+run)) {
			step, mark, _ := strings.Cut(strings.TrimSpace(line), " ")
			work[step] += mark
		}
		for _, step := range []string{"A", "B", "C", "D", "E"} {
			is := cmp.Or(work[step], "nothing")
			last := ""
			for n := range 100 { // an attempt that ended without its signal has no words
				last = cmp.Or(said[fmt.Sprintf("%s/%s#%d", run, step, n+1)], last)
			}
			if is != last {
				record, _ := m.try(m.bin, "log", run)
				s.t.Errorf("%s on %s: step %s has landed %q, and %q counted:\n%s", run, m.name, step, is, last, record)
			}
		}
	}
	if found == 0 {
		s.t.Errorf("%s is landed nowhere", run)
	}
}

// accepted holds that no key was accepted by two workers.
func (s *storm) accepted() {
	s.t.Helper()
	by, keys := map[string]string{}, 0
	for _, m := range s.workers {
		files, err := filepath.Glob(filepath.Join(m.state(), "worker/keys/*"))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, f := range files {
			key := filepath.Base(f)
			if by[key] != "" {
				s.t.Errorf("%s was accepted by %s and %s", key, by[key], m.name)
			}
			by[key] = m.name
			keys++
		}
	}
	if keys == 0 {
		s.t.Error("no worker has accepted anything")
	}
}
