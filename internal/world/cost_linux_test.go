package world

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/layout"
	"sluice/internal/tree"
)

// TestCostOfALaunch: what the sandbox makes a launch cost, in things that can be counted: mounts, programs that run outside
// it, files and folders that are made for it while it is waited for, how often the note of its git folder is opened, and who walks the checkout.
func TestCostOfALaunch(t *testing.T) {
	b := heldIn(t, "workflow: {id: w}\nsteps:\n  - {id: A, run: [sh, -c, cat /proc/self/mountinfo >mounts], next_step: DONE}\n", "")
	b.environ("PATH=/usr/bin:/bin", "HOME="+t.TempDir())
	b.put("quiet/file", "")
	key := func(n int) string { return fmt.Sprintf("%s/A#%d.1", run1, n) }
	var seen, walked func() []string
	for n := 1; n <= 3; n++ {
		before, spare := b.git.Started(), inode(filepath.Join(b.state, layout.GitsDir, ".spare"))
		if n > 1 {
			seen, walked = happens(t, filepath.Dir(b.e.PIDFile(key(n)))), happens(t, b.path("quiet"))
		}
		if ev := b.carry(b.stepJob("A", n, 1)); ev.Exit.Code != 0 {
			t.Fatalf("%+v %s", ev.Exit, ev.Output)
		}
		b.e.Settle()
		if n == 1 {
			continue
		}
		if got := walked(); len(got) > 0 { // 50,000 files are 100 ms
			t.Errorf("launch %d: the checkout was walked: %q", n, got)
		}
		if got := b.git.Started() - before; got > 0 {
			t.Errorf("launch %d: %d git processes, at most none", n, got)
		}
		if spare == nil || os.SameFile(spare, inode(filepath.Join(b.state, layout.GitsDir, ".spare"))) {
			t.Errorf("launch %d: its git folder was not the one that was there ahead", n)
		}
		all, note, in := seen(), filepath.Base(b.e.PIDFile(key(n)))+layout.GitMark, filepath.Base(b.e.PIDFile(key(n)))+layout.InboxMark
		if got := count(all, "open "+note); got > 1 { // when it is over: until then it is known
			t.Errorf("launch %d: the note of its git folder is opened %d times: %q", n, got, all)
		}
		if count(all, "make "+note)+count(all, "make "+in) > 0 || count(all, "move "+note)+count(all, "move "+in) != 2 {
			t.Errorf("launch %d: the note of its git folder or its inbox was not there ahead: %q", n, all)
		}
		if r, err := os.ReadFile(b.e.AttemptFile(run1, "A", n, "received")); err != nil || !strings.Contains(string(r), `"stores"`) {
			t.Errorf("launch %d: what came of its commits is not the note: %s %v", n, r, err)
		}
	}
	var mounts []string
	for line := range strings.Lines(b.get("mounts")) {
		at := strings.Fields(line)[4]
		if top, _, _ := strings.Cut(at[1:], "/"); top != "proc" && top != "dev" && top != "etc" && top != "opt" { // the machine's own
			mounts = append(mounts, at)
		}
	}
	if len(mounts) > 14 { // one is the run's folder in the inbox, which no link may replace
		t.Errorf("%d mounts: %q", len(mounts), mounts)
	}
	left := func() []os.DirEntry {
		all, err := os.ReadDir(filepath.Join(b.state, layout.GitsDir, run1))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := left(); len(all) > 0 {
		t.Errorf("git folders are left: %v", all)
	}

	// where no other launch follows, and nobody waits
	if ev := b.carry(b.stepJob("A", 4, 1)); ev.Exit.Code != 0 {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
	eventually(t, "the git folder is removed", func() bool { return len(left()) == 0 })
}

// happens reports what is opened, created or moved in a folder from now on.
func happens(t *testing.T, dir string) func() []string {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, dir, unix.IN_OPEN|unix.IN_CREATE|unix.IN_MOVED_TO)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() (out []string) {
		defer unix.Close(fd)
		buf := make([]byte, 1<<16)
		for {
			n, err := unix.Read(fd, buf)
			if err != nil || n <= 0 {
				return out
			}
			for b := buf[:n]; len(b) > 0; {
				mask, size := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[12:])
				name := string(bytes.TrimRight(b[16:16+size], "\x00"))
				for what, bit := range map[string]uint32{"open": unix.IN_OPEN, "make": unix.IN_CREATE, "move": unix.IN_MOVED_TO} {
					if mask&bit != 0 {
						out = append(out, what+" "+name)
					}
				}
				b = b[16+size:]
			}
		}
	}
}

func count(all []string, of string) (n int) {
	for _, s := range all {
		if s == of {
			n++
		}
	}
	return n
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
	const key = run1 + "/A#1.1"
	file := b.e.AttemptFile(o.Run, o.Step, o.N, "received")
	if err := tree.KeepReceived(b.e.Layout, key, tree.Private{Order: o}, tree.Received{Tip: o.Base}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", `{"tip":"aaa`} {
		if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if tip, err := b.e.Tip(o, "later"); err != nil || tip != o.Base {
			t.Errorf("%q: %q %v", text, tip, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if tip, err := b.e.Tip(o, "later"); err != nil || tip != "later" {
		t.Errorf("without a record: %q %v", tip, err)
	}
}
