//go:build linux

package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/tools/conform"
)

const (
	powerCuts    = 10
	controlCuts  = 12
	powerAlive   = 1400 * time.Millisecond // most, from the first answer to the cut
	ext4Shutdown = 0x8004587d              // EXT4_IOC_SHUTDOWN
	withoutFlush = 2                       // EXT4_GOING_FLAGS_NOLOGFLUSH: what is in memory alone is gone
	powerCutsVar = "SLUICE_POWER_CUTS"
)

// cut takes the power of the disk: nothing of what was not synced is there afterwards.
func (d *loopDisk) cut() {
	d.t.Helper()
	f, err := os.Open(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), ext4Shutdown, withoutFlush); err != nil {
		d.t.Skipf("kernel: EXT4_IOC_SHUTDOWN: %v", err)
	}
}

// powerCycle lets the daemon work, cuts the power in the middle, ends all that ran, mounts the disk
// again, and compares what is left with what was acknowledged. It returns what was lost.
func (x *arena) powerCycle(d *loopDisk, front ...string) (lost []string) {
	t := x.t
	t.Helper()
	x.boot(front...)
	x.awaitService()
	if x.rnd.IntN(2) == 0 {
		x.abort() // what lives rests ever longer between its launches: they are lost each time
	}
	told := len(x.ledger("launches"))
	alive := time.Duration(x.rnd.Int64N(int64(powerAlive)))
	if x.made == 0 { // longer each time, as on a slow machine a launch may take longer
		x.dry++
		alive += time.Duration(x.dry-1) * powerAlive
	}
	for until := time.Now().Add(alive); time.Now().Before(until); time.Sleep(pollEvery / 3) {
		x.traffic()
	}
	for _, r := range x.repos { // what is answered after this has not been asked
		if err := r.look(); err != nil {
			t.Fatal(err)
		}
	}
	d.cut()
	x.killAll()
	_ = x.last.Wait()
	x.last = nil
	d.remount()
	x.unexport()
	for _, r := range x.repos {
		if err := r.anotherBoot(); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]*record{}
	for _, r := range x.repos {
		j, faults, err := readRecord(r.journal())
		if err != nil {
			return append(lost, err.Error())
		}
		all[r.flow] = j
		lost = append(append(lost, faults...), r.heldAgainst(j)...)
		now, err := os.ReadFile(r.journal())
		if err != nil {
			t.Fatal(err)
		}
		if keep := linesOf(r.seen, r.seq); !bytes.HasPrefix(now, keep) {
			lost = append(lost, fmt.Sprintf("%s: of %d bytes acknowledged %d are there and the same", r.root, len(keep), common(keep, now)))
		}
		r.seen = now[:bytes.LastIndexByte(now, '\n')+1]
	}
	lost = append(lost, x.unrecorded(all)...)
	x.made += len(x.ledger("launches")) - told
	return lost
}

// unexport takes out of the exports what the journals have not: an fdatasync beside the ioctl may still say that it went
// well (ext4 passes over an extent that it cannot convert any more), and the daemon goes on for that moment, with its
// exports on a disk that has power. Of a real power cut nothing is left of that moment.
func (x *arena) unexport() {
	x.t.Helper()
	for _, r := range x.repos {
		journal, err := os.ReadFile(r.journal())
		if err != nil {
			x.t.Fatal(err)
		}
		last := int64(bytes.Count(journal, []byte("\n")))
		for _, pattern := range []string{".workflow/audit/*.log", ".workflow/runs/*/events.jsonl"} {
			names, err := filepath.Glob(filepath.Join(r.root, pattern))
			if err != nil {
				x.t.Fatal(err)
			}
			for _, name := range names {
				text, err := os.ReadFile(name)
				if err != nil {
					x.t.Fatal(err)
				}
				var keep []byte
				for line := range bytes.Lines(text) {
					var l struct{ Seq int64 }
					if json.Unmarshal(line, &l) == nil && l.Seq > last {
						x.t.Logf("%s: record %d was synced, it was said, and is gone", name, l.Seq)
						break
					}
					keep = append(keep, line...)
				}
				if err := os.Truncate(name, int64(len(keep))); err != nil {
					x.t.Fatal(err)
				}
			}
		}
	}
}

// anotherBoot makes the state folder look as if from an earlier start of the machine, as after a
// real power cut.
func (r *arenaRepo) anotherBoot() error {
	for _, pattern := range []string{"boot", "launches/*/*.pid"} {
		names, err := filepath.Glob(filepath.Join(r.state(), pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			was := text
			text = bytes.Replace(text, []byte(`{"id":"`), []byte(`{"id":"0`), 1)
			text = bytes.Replace(text, []byte(`"boot":"`), []byte(`"boot":"0`), 1)
			if bytes.Equal(text, was) {
				continue // the cut took what was in it
			}
			if err := os.WriteFile(name, text, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// linesOf is the text's first n lines.
func linesOf(text []byte, n int64) []byte {
	end := 0
	for ; n > 0; n-- {
		i := bytes.IndexByte(text[end:], '\n')
		if i < 0 {
			break
		}
		end += i + 1
	}
	return text[:end]
}

func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func TestPowerCut(t *testing.T) {
	conform.Rule(t, "2-files journal sync", "the real daemon's power is cut in the middle of real runs: nothing acknowledged is lost; with the sync taken out it is")
	t.Parallel()
	if !ownMounts(t) {
		return
	}
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		d := newLoopDisk(t)
		x := newArena(t, seedOf(t), 2, arenaPlaces{state: d.dir})
		unix.Sync()
		cuts := timesOf(t, powerCutsVar, powerCuts)
		for n := 0; n < cuts || x.made == 0 && n < 10*cuts; n++ {
			for _, what := range x.powerCycle(d) {
				t.Errorf("cut %d: %s", n, what)
			}
			if t.Failed() {
				return
			}
		}
		x.boot()
		eventually(t, "the daemon serves", func() bool { return x.ask() })
		x.through()
		runs, answers := x.count()
		t.Logf("%d cuts, %d launches, %d runs and %d answers acknowledged: nothing is lost", cuts, x.made, runs, answers)
		if x.made == 0 {
			t.Error("nothing was launched: nothing was tried")
		}
	})
	// All on the disk that is cut: files of runs and of git go, too. What git keeps is git's to sync, so that a run may not
	// come to its end; but nothing acknowledged is lost, and the daemon serves on.
	t.Run("whole", func(t *testing.T) {
		t.Parallel()
		d := newLoopDisk(t)
		x := newArena(t, seedOf(t), 1, arenaPlaces{state: filepath.Join(d.dir, "state"), repos: filepath.Join(d.dir, "repos")})
		gitConfig := filepath.Join(x.work, "home/.gitconfig")
		f, err := os.OpenFile(gitConfig, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("[core]\n\tfsync = all\n")
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		unix.Sync()
		cuts := timesOf(t, powerCutsVar, powerCuts) / 2
		for n := 0; n < cuts || x.made == 0 && n < 10*cuts; n++ {
			for _, what := range x.powerCycle(d) {
				t.Errorf("cut %d: %s", n, what)
			}
			if t.Failed() {
				return
			}
		}
		x.boot()
		eventually(t, "the daemon serves", x.ask)
		if err := x.stop(); err != nil {
			t.Errorf("the daemon ends with %v", err)
		}
		x.check()
		t.Logf("at least %d cuts, %d launches: nothing is lost", cuts, x.made)
	})
	// The control: with syncs that do nothing, data must be lost, or the test finds nothing.
	t.Run("without sync", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("strace"); err != nil {
			t.Skip("needs: strace (apt-get install strace)")
		}
		d := newLoopDisk(t)
		x := newArena(t, seedOf(t), 2, arenaPlaces{state: d.dir})
		unix.Sync()
		front := []string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:retval=0"}
		x.boot()
		x.busy() // so that there is something to lose
		x.kill()
		x.killAll()
		for n := range controlCuts {
			if lost := x.powerCycle(d, front...); len(lost) > 0 {
				t.Logf("cut %d, as it has to: %s", n, lost[0])
				return
			}
		}
		t.Errorf("%d power cuts without a sync lost nothing: this test finds nothing", controlCuts)
	})
}
