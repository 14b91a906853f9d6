//go:build linux

package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice/journal"
)

// record is what a journal says, as far as it is held against the ledger and against what was acknowledged.
type record struct {
	runs     map[string]bool
	outcomes map[string]string // "run/gate#round" -> passed, failed or voided
	verdicts map[string]string // "run/gate#round" -> what the reviewer said
	keys     map[string]bool
	launches map[string]int // "run/step#attempt", "run/gate#round" -> launches
	last     int64
}

// readRecord reads a journal without the daemon, the engine or the journal package: JSON lines.
func readRecord(name string) (*record, []string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	j := newRecord()
	var faults []string
	if err := j.read(data, &faults); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return j, faults, nil
}

func newRecord() *record {
	return &record{map[string]bool{}, map[string]string{}, map[string]string{}, map[string]bool{}, map[string]int{}, 0}
}

// read takes in the lines that follow; what cannot be is added to faults.
func (j *record) read(data []byte, into *[]string) error {
	var faults []string
	defer func() { *into = append(*into, faults...) }()
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // torn: the next start cuts it off
		}
		var l struct {
			Seq   int64
			Facts []struct {
				Kind, Run, Gate, Step, Outcome, Key string
				N                                   int
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("after %d: %w", j.last, err)
		}
		if l.Seq != j.last+1 {
			faults = append(faults, fmt.Sprintf("seq %d after %d", l.Seq, j.last))
		}
		j.last = l.Seq
		for _, f := range l.Facts {
			round, attempt := fmt.Sprintf("%s/%s#%d", f.Run, f.Gate, f.N), fmt.Sprintf("%s/%s#%d", f.Run, f.Step, f.N)
			switch f.Kind {
			case "run_started":
				j.runs[f.Run] = true
			case "round_passed", "round_failed", "round_voided":
				if before := j.outcomes[round]; before != "" {
					faults = append(faults, fmt.Sprintf("%s has two outcomes: %s and %s", round, before, f.Kind))
				}
				j.outcomes[round] = strings.TrimPrefix(f.Kind, "round_")
			case "judged":
				if before := j.verdicts[round]; before != "" {
					faults = append(faults, fmt.Sprintf("%s was judged twice: %s and %s", round, before, f.Outcome))
				}
				j.verdicts[round] = f.Outcome
			case "step_launched":
				j.launches[attempt]++
			case "review_started":
				j.launches[round]++
			}
			switch f.Kind {
			case "step_launched", "review_started", "check_started", "hook_started":
				if j.keys[f.Key] {
					faults = append(faults, fmt.Sprintf("%s: key %s is launched twice", f.Kind, f.Key))
				}
				j.keys[f.Key] = true
			}
		}
	}
	return nil
}

// check looks at what is left when no daemon lives: the journals, what was acknowledged, the ledger.
func (x *arena) check() {
	t := x.t
	t.Helper()
	all := map[string]*record{}
	rounds := 0
	for _, r := range x.repos {
		j, faults, err := readRecord(r.journal())
		if err != nil {
			t.Error(err)
			continue
		}
		all[r.flow] = j
		rounds += len(j.outcomes)
		faults = append(faults, r.heldAgainst(j)...)
		if now, err := os.ReadFile(r.journal()); err != nil || !bytes.HasPrefix(now, r.seen) {
			faults = append(faults, fmt.Sprintf("%s: what was recorded once is not what is recorded now: %v", r.root, err))
		}
		if rep, err := journal.Verify(r.state(), journal.Options{}); err != nil || rep.Records != j.last {
			faults = append(faults, fmt.Sprintf("%s: %v, %d records, %d lines", r.root, err, rep.Records, j.last))
		}
		for _, f := range faults {
			t.Error(f)
		}
	}
	if b, err := os.ReadFile(filepath.Join(x.work, "broken")); err == nil {
		t.Errorf("the agents met: %s", b)
	}
	launched := x.checkLedger(all)
	runs, answers := x.count()
	t.Logf("%d runs and %d answers acknowledged, %d outcomes, %d launches", runs, answers, rounds, launched)
	if rounds+launched == 0 && !t.Failed() {
		t.Error("nothing was launched: nothing was tried")
	}
}

// heldAgainst compares the journal with what a person was told.
func (r *arenaRepo) heldAgainst(j *record) (faults []string) {
	if j.last < r.seq {
		faults = append(faults, fmt.Sprintf("%s: record %d was told of, %d are there", r.root, r.seq, j.last))
	}
	for run := range r.runs {
		if !j.runs[run] {
			faults = append(faults, fmt.Sprintf("%s was acknowledged and is not in the record", run))
		}
	}
	for round, outcome := range r.told {
		want := map[string]string{"pass": "passed", "fail": "failed"}[outcome]
		if got := j.outcomes[round]; got != want {
			faults = append(faults, fmt.Sprintf("%s was acknowledged as %s; the record has %q", round, outcome, got))
		}
	}
	return faults
}

// checkLedger compares the agents' own ledger with the journals: each launch happened once and was
// recorded before, and each recorded verdict is a reviewer's. It returns the number of launches.
func (x *arena) checkLedger(all map[string]*record) int {
	t := x.t
	t.Helper()
	for _, f := range x.unrecorded(all) {
		t.Error(f)
	}
	said := map[string][]string{}
	for _, f := range x.ledger("ends") {
		said[f[0]] = append(said[f[0]], f[2])
	}
	for _, j := range all {
		for round, verdict := range j.verdicts {
			if gate := round[strings.Index(round, "/")+1:]; strings.HasPrefix(gate, "GD") {
				continue // a command's
			}
			if !slices.Contains(said[round], verdict) {
				t.Errorf("%s was judged %s; its reviewers said %q", round, verdict, said[round])
			}
		}
	}
	return len(x.ledger("launches"))
}

// unrecorded returns the launches that happened twice, or are not on the record. To ask again for an answer that cannot be
// read is no launch of its own there.
func (x *arena) unrecorded(all map[string]*record) (faults []string) {
	pids, starts := map[string]string{}, map[string]int{}
	for _, f := range x.ledger("launches") {
		if before := pids[f[1]]; before != "" {
			faults = append(faults, fmt.Sprintf("%s was launched twice: pid %s and %s", f[0], before, f[2]))
		}
		pids[f[1]] = f[2]
		if !strings.HasSuffix(f[0], "+") {
			starts[f[0]]++
		}
	}
	for key, n := range starts {
		flow, _, _ := strings.Cut(key, "-")
		if j := all[flow]; j != nil && n > j.launches[key] {
			faults = append(faults, fmt.Sprintf("%s was launched %d times, the record has %d", key, n, j.launches[key]))
		}
	}
	return faults
}

// ledger reads what the agents wrote; a line that a kill cut short at the end of the file is left out.
func (x *arena) ledger(name string) [][]string {
	x.t.Helper()
	data, err := os.ReadFile(filepath.Join(x.work, name))
	if err != nil && !os.IsNotExist(err) {
		x.t.Fatal(err)
	}
	var out [][]string
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 {
			out = append(out, f)
		} else {
			x.t.Errorf("%s: %q", name, line)
		}
	}
	return out
}

// checkProcesses looks at the process table while no daemon lives: of each step at most one launch lives.
func (x *arena) checkProcesses() {
	x.t.Helper()
	type one struct {
		pid   int
		token string
	}
	found := map[string]one{}
	for _, pid := range processesOf(x.work) {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue // it ended
		}
		vars := map[string]string{}
		for v := range strings.SplitSeq(string(env), "\x00") {
			name, value, _ := strings.Cut(v, "=")
			vars[name] = value
		}
		who := vars["SLUICE_GATE"]
		if who == "" {
			who = vars["SLUICE_STEP"]
		}
		key, token := vars["SLUICE_RUN"]+"/"+who, vars["SLUICE_TOKEN"]
		if who == "" || token == "" {
			continue
		}
		if other, ok := found[key]; ok && other.token != token && syscallAlive(other.pid) && syscallAlive(pid) {
			x.t.Errorf("two live launches of %s: pid %d and %d", key, other.pid, pid)
		}
		found[key] = one{pid, token}
	}
}

func syscallAlive(pid int) bool { return !zombie("/proc/" + strconv.Itoa(pid)) }

// alone waits until nothing is left of the arena but the daemon and what it keeps as its child.
func (x *arena) alone() {
	x.t.Helper()
	var agents, hosts []int
	eventually(x.t, "no process is left but the daemon", func() bool {
		agents, hosts = nil, nil
		keep := []int{}
		if x.last != nil {
			keep = append(x.children(), x.last.Process.Pid)
		}
		for _, pid := range processesOf(x.work) {
			if !slices.Contains(keep, pid) {
				agents = append(agents, pid)
			}
		}
		for _, pid := range x.hosts() {
			if !slices.Contains(keep, pid) {
				hosts = append(hosts, pid)
			}
		}
		return len(agents)+len(hosts) == 0
	})
}
