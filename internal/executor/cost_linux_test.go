package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/tree"
)

// TestCostOfALaunch: what the sandbox makes a launch cost, in things that can be counted: mounts, programs that run outside
// it, files and folders that are made for its git folder while it is waited for.
func TestCostOfALaunch(t *testing.T) {
	b := heldIn(t, "workflow: {id: w}\nsteps:\n  - {id: A, run: [sh, -c, cat /proc/self/mountinfo >mounts], next_step: DONE}\n", "")
	b.e.opt.Environ = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()}
	for n := 1; n <= 3; n++ {
		before, spare := b.git.Started(), inode(b.e.spareGit())
		if ev := b.carry(b.stepJob("A", n, 1)); ev.Exit.Code != 0 {
			t.Fatalf("%+v %s", ev.Exit, ev.Output)
		}
		b.e.chores.Wait()
		if n == 1 {
			continue
		}
		if got := b.git.Started() - before; got > 0 {
			t.Errorf("launch %d: %d git processes, at most none", n, got)
		}
		if spare == nil || os.SameFile(spare, inode(b.e.spareGit())) {
			t.Errorf("launch %d: its git folder was not the one that was there ahead", n)
		}
	}
	var mounts []string
	for line := range strings.Lines(b.get("mounts")) {
		at := strings.Fields(line)[4]
		if top, _, _ := strings.Cut(at[1:], "/"); top != "proc" && top != "dev" && top != "etc" && top != "opt" { // the machine's own
			mounts = append(mounts, at)
		}
	}
	if len(mounts) > 13 {
		t.Errorf("%d mounts: %q", len(mounts), mounts)
	}
	if left, err := os.ReadDir(filepath.Dir(b.e.gitDirOf(run1 + "/A#1.1"))); len(left) > 0 || err != nil {
		t.Errorf("git folders are left: %v %v", left, err)
	}
}

func inode(path string) os.FileInfo {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	return info
}

// TestReceivedIsTorn: of a launch without commits nothing is written through to the disk. Where a power cut takes the
// record, the base is the tip, and never what a person has committed meanwhile.
func TestReceivedIsTorn(t *testing.T) {
	b := newBench(t, inGitSpec)
	o := tree.Order{Run: run1, Step: "A", N: 1, Base: strings.Repeat("a", 40)}
	file := b.e.attemptFile(o.Run, o.Step, o.N, receivedFile)
	if err := b.e.keepReceived(tree.Private{Order: o}, tree.Received{Tip: o.Base}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", `{"tip":"aaa`} {
		if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if tip, err := b.e.tip(o, "later"); err != nil || tip != o.Base {
			t.Errorf("%q: %q %v", text, tip, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if tip, err := b.e.tip(o, "later"); err != nil || tip != "later" {
		t.Errorf("without a record: %q %v", tip, err)
	}
}
