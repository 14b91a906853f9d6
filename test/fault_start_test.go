//go:build linux

package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/internal/fault"
	"sluice/tools/conform"
)

const (
	startsDamaged    = 8  // starts on a journal that was cut, and on one that was flipped, in the short form
	startsAtOnce     = 10 // daemons that are started at the same time
	startsShort      = 50
	startsDamagedVar = "SLUICE_DAMAGED_STARTS"
	startsVar        = "SLUICE_STARTS"
)

// worked lets a run end in every repo, ends the daemon as a crash does, and returns the journals.
func (x *arena) worked() [][]byte {
	x.t.Helper()
	x.boot()
	x.busy()
	x.finish()
	x.kill()
	x.killAll()
	var out [][]byte
	for _, r := range x.repos {
		b, err := os.ReadFile(r.journal())
		if err != nil {
			x.t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// served waits until the daemon has tried every repo, and returns the state of one.
func (x *arena) served(r *arenaRepo) (s daemon.RepoState) {
	x.t.Helper()
	eventually(x.t, "the daemon has tried "+r.root, func() bool {
		c := daemon.NewDaemonClient(r.home)
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), answerMost)
		defer cancel()
		states, err := c.Repos(ctx)
		for _, s = range states {
			if err == nil && s.Root == r.root {
				return s.Served || s.Why != ""
			}
		}
		return false
	})
	return s
}

// lay replaces the repo's journal, and removes what was kept beside it and derived from it.
func (r *arenaRepo) lay(t *testing.T, data []byte) {
	t.Helper()
	beside, _ := filepath.Glob(filepath.Join(r.state(), "journal.torn-*"))
	snaps, _ := filepath.Glob(filepath.Join(r.state(), "snapshot-*"))
	for _, name := range append(beside, snaps...) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(r.journal(), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStartOnACutJournal(t *testing.T) {
	conform.Rule(t, "2-files journal torn", "the real daemon on a journal cut anywhere: it starts with the exact prefix and goes on")
	t.Parallel()
	x := newArena(t, seedOf(t), 2, arenaPlaces{})
	whole := x.worked()
	for n := range timesOf(t, startsDamagedVar, startsDamaged) {
		r := x.repos[n%2]
		data := whole[n%2][:x.rnd.IntN(len(whole[n%2]))]
		r.lay(t, data)
		for _, r := range x.repos {
			r.seq, r.seen = 0, nil
			clear(r.told)
			clear(r.runs)
		}
		good := data[:bytes.LastIndexByte(data, '\n')+1]
		x.boot()
		if s := x.served(r); !s.Served {
			t.Fatalf("cut at %d: it is not served: %s", len(data), s.Why)
		}
		eventually(t, "a run is started", func() bool { return x.ask() })
		x.kill()
		x.killAll()
		now, err := os.ReadFile(r.journal())
		if err != nil || !bytes.HasPrefix(now, good) || len(now) == len(good) {
			t.Fatalf("cut at %d: of %d good bytes %d are there, of %d: %v", len(data), len(good), common(good, now), len(now), err)
		}
		if kept, _ := filepath.Glob(filepath.Join(r.state(), "journal.torn-*")); (len(kept) == 0) != (len(good) == len(data)) {
			t.Errorf("cut at %d: kept aside: %q", len(data), kept)
		}
		for _, r := range x.repos {
			j, faults, err := readRecord(r.journal())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range append(faults, r.heldAgainst(j)...) {
				t.Errorf("cut at %d: %s", len(data), f)
			}
		}
		x.repos[n%2].lay(t, whole[n%2])
		if err := os.RemoveAll(filepath.Join(r.state(), "launches")); err != nil { // of runs that are not there now
			t.Fatal(err)
		}
	}
}

func TestStartOnAFlippedJournal(t *testing.T) {
	conform.Rule(t, "2-files journal damage", "the real daemon on a journal with a flipped bit: that repo is refused, with the offset, and nothing is changed; the others go on; a daemon that has no other ends with 78")
	t.Parallel()
	x := newArena(t, seedOf(t), 2, arenaPlaces{})
	whole := x.worked()
	r, other := x.repos[0], x.repos[1]
	for range timesOf(t, startsDamagedVar, startsDamaged) {
		data := bytes.Clone(whole[0])
		at := x.rnd.IntN(len(data) - 1)
		data[at] ^= 1 << x.rnd.IntN(8)
		begin := bytes.LastIndexByte(whole[0][:at], '\n') + 1
		r.lay(t, data)
		x.boot()
		s := x.served(r)
		if want := fmt.Sprintf("offset %d:", begin); s.Served || !strings.Contains(s.Why, want) || !strings.Contains(s.Why, "sluice journal repair --to") {
			t.Fatalf("byte %d flipped: served %v, %s; want %s", at, s.Served, s.Why, want)
		}
		var exit *exec.ExitError
		if out, err := x.try(r, x.bin, "status"); !errors.As(err, &exit) || exit.ExitCode() != fault.ExitDamaged {
			t.Errorf("byte %d flipped: sluice status: %v\n%s", at, err, out)
		}
		c := other.client()
		eventually(t, "the other repo goes on", func() bool { return x.start(other, c) })
		c.Close()
		x.kill()
		if now, err := os.ReadFile(r.journal()); err != nil || !bytes.Equal(now, data) {
			t.Errorf("byte %d flipped: the damaged journal was changed: %v", at, err)
		}
	}
	x.killAll()
	if out, err := x.try(other, x.bin, "watch", "rm"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	x.boot()
	if code := x.endsItself(); code != fault.ExitDamaged {
		t.Errorf("a daemon that has only a damaged repo ends with %d", code)
	}
}

// What precedes the newest snapshot is not read at a start: it is checked afterwards, and reported.
func TestDamageBeforeTheSnapshot(t *testing.T) {
	conform.Rule(t, "2-files journal damage", "damage in what a snapshot stands for is found behind the loop, and told; the repo is served")
	t.Parallel()
	x := newArena(t, seedOf(t), 1, arenaPlaces{})
	file := filepath.Join(x.work, "config/sluice/config.yaml")
	settings, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	x.put("config/sluice/config.yaml", strings.Replace(string(settings), "desktop: false", "desktop: false, command: [sh, -c, 'cat >>"+x.work+"/told']", 1))
	x.boot()
	x.busy()
	x.finish()
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	r := x.repos[0]
	data, err := os.ReadFile(r.journal())
	if err != nil {
		t.Fatal(err)
	}
	at := len(data) / 2
	data[at] ^= 4
	if err := os.WriteFile(r.journal(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	x.boot()
	begin := bytes.LastIndexByte(data[:at], '\n') + 1
	eventually(t, "status tells of the damage", func() bool { return x.unwell(fmt.Sprintf("offset %d:", begin)) })
	eventually(t, "a person is told", func() bool {
		b, _ := os.ReadFile(filepath.Join(x.work, "told"))
		return bytes.Contains(b, []byte("the journal is damaged"))
	})
	if out, err := x.try(r, x.bin, "audit", "verify"); err == nil || strings.Contains(out, "repair") || !strings.Contains(out, "continue from a snapshot") {
		t.Errorf("verify of damage that the runs do not need: %v\n%s", err, out)
	}
	x.ask()
	x.finish()
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
}

// starter is one of several daemons that are started at the same time.
type starter struct {
	cmd  *exec.Cmd
	log  string
	done chan error
}

func (x *arena) starter(n int) *starter {
	s := &starter{log: filepath.Join(x.work, fmt.Sprintf("starter-%d.log", n)), done: make(chan error, 1)}
	f, err := os.Create(s.log)
	if err != nil {
		x.t.Fatal(err)
	}
	defer f.Close()
	s.cmd = exec.Command(x.bin, "daemon")
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = x.work, x.env, f, f
	if err := s.cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	go func() { s.done <- s.cmd.Wait() }()
	return s
}

// serves reports whether the daemon has come to serve.
func (s *starter) serves() bool {
	b, _ := os.ReadFile(s.log)
	return bytes.Contains(b, []byte(`"the daemon serves"`))
}

// disturb does to the locks what people and cleaners do.
func (x *arena) disturb(r *arenaRepo) {
	switch x.rnd.IntN(5) {
	case 0:
		_ = os.Remove(filepath.Join(r.home, "holder"))
	case 1:
		_ = os.WriteFile(filepath.Join(r.home, "holder"), []byte("1\n"), 0o600)
	case 2:
		_ = os.Remove(filepath.Join(r.state(), "holder"))
	case 3: // a new file in its place, with a lock of ours
		_ = os.Rename(filepath.Join(r.home, "holder"), filepath.Join(r.home, "holder.old"))
		if f, err := os.Create(filepath.Join(r.home, "holder")); err == nil {
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			f.Close()
		}
	}
}

func TestTwoDaemons(t *testing.T) {
	conform.Rule(t, "3-engine one writer", "daemons started at the same time, their lock's file deleted and replaced: one serves, the others end with 75 and say who does")
	t.Parallel()
	x := newArena(t, seedOf(t), 1, arenaPlaces{})
	r := x.repos[0]
	want := timesOf(t, startsVar, startsShort)
	begun := time.Now()
	taken, starts := 0, 0
	for starts < want {
		var all []*starter
		for i := range startsAtOnce {
			all = append(all, x.starter(i))
			x.disturb(r)
		}
		starts += len(all)
		x.oneServes(all, nil)
		if x.rnd.IntN(2) == 0 { // it is killed while others wait for it
			first := x.server(all)
			for i := range startsAtOnce / 2 {
				all = append(all, x.starter(startsAtOnce+i))
			}
			starts += startsAtOnce / 2
			x.disturb(r)
			_ = first.cmd.Process.Kill()
			<-first.done
			taken++
			first.done <- nil
			x.oneServes(all, first)
		}
		last := x.server(all)
		c := r.client()
		eventually(t, "the one that serves takes things in", func() bool { return x.start(r, c) })
		c.Close()
		_ = last.cmd.Process.Kill()
		<-last.done
		x.killAll()
	}
	t.Logf("%d starts in %v, %d times the one that served was killed meanwhile", starts, time.Since(begun).Round(time.Second), taken)
	j, faults, err := readRecord(r.journal())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(faults, r.heldAgainst(j)...) {
		t.Error(f)
	}
}

// server is the one that serves.
func (x *arena) server(all []*starter) *starter {
	for _, s := range all {
		if s.serves() && len(s.done) == 0 {
			return s
		}
	}
	x.t.Fatal("none serves")
	return nil
}

// oneServes waits until one serves and all others have ended, and sees to it that they say so. killed served before.
func (x *arena) oneServes(all []*starter, killed *starter) {
	t := x.t
	t.Helper()
	var one *starter
	eventually(t, "one serves and the others have ended", func() bool {
		alive, serving := 0, 0
		for _, s := range all {
			if len(s.done) > 0 {
				continue
			}
			if alive++; s.serves() {
				serving, one = serving+1, s
			}
		}
		if serving > 1 {
			t.Fatalf("%d daemons serve at the same time", serving)
		}
		return alive == 1 && serving == 1
	})
	for _, s := range all {
		if s == one || s == killed {
			continue
		}
		err := <-s.done
		s.done <- err
		var exit *exec.ExitError
		said, _ := os.ReadFile(s.log)
		if !errors.As(err, &exit) || exit.ExitCode() != fault.ExitServed || !bytes.Contains(said, []byte("a daemon runs already")) {
			t.Errorf("one that came second ends with %v:\n%s", err, said)
		}
		if s.serves() {
			t.Errorf("two daemons served at the same time:\n%s", said)
		}
	}
}

// Two daemons with different state folders would both serve a repo; so would a second one when the first's was moved away.
func TestTwoStates(t *testing.T) {
	conform.Rule(t, "3-engine one writer", "a repo is not served twice where the two keep their state in different folders")
	t.Parallel()
	x := newArena(t, seedOf(t), 1, arenaPlaces{})
	r := x.repos[0]
	x.boot()
	if s := x.served(r); !s.Served {
		t.Fatal(s.Why)
	}
	x.env = append(x.env, "XDG_STATE_HOME="+filepath.Join(x.work, "elsewhere"))
	var exit *exec.ExitError
	out, err := x.try(r, "timeout", "30", x.bin, "run", r.flow) // or it waits for a person
	if !errors.As(err, &exit) || exit.ExitCode() != fault.ExitServed || !strings.Contains(out, "keeps its state elsewhere") {
		t.Errorf("a run beside a daemon with another state folder: %v\n%s", err, out)
	}
}

// After a repair the numbers of runs that were cut off are given again: the new runs meet nothing of the old ones.
func TestRepairForgetsRuns(t *testing.T) {
	conform.Rule(t, "2-files journal damage", "what was launched for runs that a repair cut off is ended and put aside; new runs of their numbers are launched anew")
	t.Parallel()
	x := newArena(t, seedOf(t), 1, arenaPlaces{})
	x.worked()
	r := x.repos[0]
	j, _, err := readRecord(r.journal())
	if err != nil {
		t.Fatal(err)
	}
	launches := func() (n int) {
		for _, f := range x.ledger("launches") {
			if f[0] == r.flow+"-2/A#1" {
				n++
			}
		}
		return n
	}
	x.boot()
	eventually(t, "a second run is launched", func() bool { x.person(r, true); return launches() == 1 })
	x.kill()
	out, err := x.try(r, x.bin, "journal", "repair", "--yes", "--to", fmt.Sprint(j.last))
	if err != nil || !strings.Contains(out, r.flow+"-2") {
		t.Fatalf("%v\n%s", err, out)
	}
	x.alone()
	aside, _ := filepath.Glob(filepath.Join(r.state(), "cut-*", "launches", r.flow+"-2", "*.pid"))
	runs, _ := filepath.Glob(filepath.Join(r.root, ".workflow/runs", r.flow+"-2*"))
	if len(aside) == 0 || len(runs) != 1 || !strings.Contains(runs[0], ".cut-") {
		t.Errorf("put aside: %q, %q", aside, runs)
	}
	clear(r.runs)
	clear(r.told)
	x.boot()
	eventually(t, "the number is given again", func() bool { return x.ask() && r.runs[r.flow+"-2"] })
	x.finish()
	if n := launches(); n != 2 {
		t.Errorf("%s-2 was launched %d times in all", r.flow, n)
	}
	if err := x.stop(); err != nil {
		t.Error(err)
	}
}
