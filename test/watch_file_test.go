//go:build linux

package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/workspace"
	"sluice/tools/conform"
)

// whole is a signal whose every beginning is no signal; its step counts as done, and says so in these words.
const whole = `{"step": "X-1", "status": "done", "summary": "é \"x\" 🎉", "answer": {"n": [1.5e3, true, null]}}`

// Six ways to write a file, and three that make no event when the last byte comes: each is taken in once, whole, and never
// before.
func TestWatchWaysToWrite(t *testing.T) {
	conform.Rule(t, "2-files signal 2", "however it is written, a signal counts once, when it is whole")
	t.Parallel()
	w := newInbox(t, strings.Replace(watchSettings, "150ms", "20s", 1)) // what is half written may be so for long
	w.served()
	outside, editor, copied := filepath.Join(w.work, "outside"), filepath.Join(w.work, "editor"), filepath.Join(w.work, "copied")
	text := []byte(whole)
	path := w.inbox(sentinel)
	shm := "/dev/shm"
	if !workspace.IsDir(shm) {
		shm = w.work
	}
	elsewhere := filepath.Join(shm, filepath.Base(filepath.Dir(w.work))+sentinel)
	defer os.Remove(elsewhere) // moved away, but where the test has failed
	for _, way := range []struct {
		name string
		do   func()
	}{
		{"truncated and written", func() { w.must(os.WriteFile(path, text, 0o644)) }},
		{"byte by byte", func() { w.byByte(path, text) }},
		{"dotfile and rename", func() { w.drop(sentinel, whole) }},
		{"renamed in from another folder", func() { w.must(os.WriteFile(outside, text, 0o644), os.Rename(outside, path)) }},
		{"moved in from another file system", func() { w.must(os.WriteFile(elsewhere, text, 0o644)); w.do("mv", elsewhere, path) }},
		{"linked in", func() { w.must(os.WriteFile(outside, text, 0o644), os.Link(outside, path), os.Remove(outside)) }},
		{"an editor's swap file and backup", func() {
			w.must(os.WriteFile(w.inbox("."+sentinel+".swp"), []byte("b0VIM"), 0o600), os.WriteFile(editor, text, 0o644))
			w.must(os.WriteFile(path, text[:7], 0o644), os.Rename(path, w.inbox("."+sentinel+"~")), os.Rename(editor, path))
			w.must(os.Remove(w.inbox("."+sentinel+".swp")), os.Remove(w.inbox("."+sentinel+"~")))
		}},
		{"cp --reflink", func() { w.must(os.WriteFile(copied, text, 0o644)); w.do("cp", "--reflink=auto", copied, path) }},
		{"through a memory map", func() { w.mapped(path, text) }},
		{"through its other name", func() {
			w.must(os.WriteFile(outside, text[:9], 0o644), os.Link(outside, path))
			w.looked(2)
			w.must(os.WriteFile(outside, text, 0o644), os.Remove(outside))
		}},
	} {
		run := w.offered()
		way.do()
		if strings.HasPrefix(way.name, "moved in") {
			// mv sets the file's times after its last byte: what was taken in by then is seen once more, and refused.
			w.ends(way.name, run)
			eventually(t, "nothing is left of it", func() bool { return len(w.lying()) == 0 && w.moved() })
			w.must(os.RemoveAll(w.inbox("rejected")))
		}
		w.passes(way.name, run)
		if n := strings.Count(w.do(w.bin, "log", "--all", run), "says done ("+sentinel); n != 1 {
			t.Errorf("%s: taken in %d times", way.name, n)
		}
	}
	if n := w.rejected(); n != 0 {
		t.Errorf("%d files were rejected", n)
	}
}

// byByte writes a file so that at each length it can be read, and is by a scan at some.
func (w *inboxBox) byByte(path string, text []byte) {
	w.t.Helper()
	f, err := os.Create(path)
	w.must(err)
	for i := range text {
		_, err := f.Write(text[i : i+1])
		w.must(err)
		if i%20 == 0 {
			w.looked(1)
		}
	}
	w.must(f.Close())
}

// mapped writes the end of a file through a memory map.
func (w *inboxBox) mapped(path string, text []byte) {
	w.t.Helper()
	w.must(os.WriteFile(path, append(bytes.Clone(text[:len(text)-1]), ' '), 0o644))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	w.must(err)
	m, err := unix.Mmap(int(f.Fd()), 0, len(text), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	w.must(err)
	w.looked(2)
	copy(m, text)
	w.must(unix.Munmap(m), f.Close())
}

// looked waits for looks at the inbox by time: a file that the daemon reads on each stays where it is, and its run waits.
func (w *inboxBox) looked(times int) {
	w.t.Helper()
	time.Sleep(time.Duration(times) * 350 * time.Millisecond) // nothing says that nothing was taken in: too short only weakens the test
	if r, ok := w.run(); !ok || !r.Live() || r.Steps[0].State != "running" {
		w.t.Fatalf("taken in before it was whole: %+v", r.Steps[0])
	}
}

// hostile creates all that an inbox may contain and should not; it returns the names to refuse.
func (w *inboxBox) hostile() (names []string) {
	w.t.Helper()
	put := func(name, text string) {
		w.must(os.WriteFile(w.inbox(name), []byte(text), 0o644))
		names = append(names, name)
	}
	made := func(name string, err error) {
		w.must(err)
		names = append(names, name)
	}
	secret := filepath.Join(w.work, "secret.json")
	w.must(os.WriteFile(secret, []byte(`{"status": "done"}`), 0o600))
	made("link-done.json", os.Symlink(secret, w.inbox("link-done.json")))
	made("loop-done.json", os.Symlink("loop-done.json", w.inbox("loop-done.json")))
	made("pipe-done.json", unix.Mkfifo(w.inbox("pipe-done.json"), 0o600))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(w.work, "s")})
	w.must(err)
	l.SetUnlinkOnClose(false)
	made("socket-done.json", errors.Join(l.Close(), os.Rename(filepath.Join(w.work, "s"), w.inbox("socket-done.json"))))
	if err := unix.Mknod(w.inbox("device-done.json"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err == nil {
		names = append(names, "device-done.json")
	} else {
		w.t.Logf("kernel: no device node to be made: %v", err)
	}
	f, err := os.Create(w.inbox("sparse-done.json"))
	w.must(err)
	made("sparse-done.json", errors.Join(f.Truncate(1<<30), f.Close()))
	put("deep-done.json", strings.Repeat("[", 30_000)+strings.Repeat("]", 30_000))
	put("deeper-done.json", `{"answer": `+strings.Repeat(`{"a":`, 10_000)+"1"+strings.Repeat("}", 10_001))
	put("utf8-done.json", "{\"summary\": \"\xff\xfe\"}")
	put("nul-done.json", "{\"summary\": \"a\x00b\"}")
	put("zeros-done.json", strings.Repeat("\x00", 1000))
	put("double-done.json", `{"status": "failed", "status": "done"}`)
	put("case-done.json", `{"status": "failed", "Status": "done"}`)
	put("number-done.json", `1e999999999`)
	put("x-1-done.json", `{"status": "done"}`)
	put("new\nline-done.json", `{}`)
	put("bytes\xff\xfe-done.json", `{}`)
	put("\x1b[31mred\u202e-done.json", `{}`)
	put(strings.Repeat("n", 245)+"-done.json", `{}`)
	put(strings.Repeat("é", 127)+"e", `{}`)
	put("-rf", "")
	put("--help-done.json", `{}`)
	put(" ", "")
	put("%s%n$(touch pwned)`id`;'\"-done.json", `{}`)
	return names
}

// Links, pipes, sockets, devices, a gigabyte, JSON and names made to hurt: each is refused and kept with its reason, twice,
// as what has the name of one that was refused before has to go somewhere too; none of it is followed, waited for, or read
// whole, and the signal beside it counts.
func TestWatchHostileFiles(t *testing.T) {
	conform.Rule(t, "2-files signal 7", "what is no small regular file with a plain name and strict JSON is refused, and hurts nobody")
	t.Parallel()
	w := newInbox(t, watchSettings)
	w.served()
	before := w.peakMB()
	for round := 1; round <= 2; round++ {
		run := w.offered()
		names := w.hostile()
		w.put("repo/.workflow/signals/.hidden-done.json", `{"status": "failed"}`)
		w.drop(sentinel, `{"status": "done"}`)
		w.passes("beside them", run)
		eventually(t, "all are out of the inbox, with their reasons", func() bool {
			beginnings, _ := filepath.Glob(w.inbox("rejected", ".sluice-tmp-*"))
			return len(w.lying()) == 0 && len(beginnings) == 0 && w.moved()
		})
		for _, name := range names {
			if _, err := os.Lstat(w.inbox("rejected", name)); err != nil {
				t.Errorf("round %d: %q is not kept: %v", round, name, err)
			}
			if len(name)+len(".why") > 255 {
				continue // its reason is in the log alone
			}
			if why, err := os.ReadFile(w.inbox("rejected", name+".why")); err != nil || len(why) < 10 || bytes.Count(why, []byte("\n")) != 1 || bytes.ContainsAny(why[:len(why)-1], "\x00\x1b\n\xff") {
				t.Errorf("round %d: %q: why: %q, %v", round, name, why, err)
			}
		}
		if n := w.rejected(); n != round*len(names) {
			t.Errorf("round %d: %d files are kept, want %d", round, n, round*len(names))
		}
	}
	if _, err := os.Lstat(w.inbox(".hidden-done.json")); err != nil {
		t.Errorf("a dotfile was touched: %v", err)
	}
	for _, out := range []string{w.do(w.bin, "log", "--all"), w.do(w.bin, "status"), w.do(w.bin, "status", "--json"), w.logText()} {
		if strings.ContainsAny(out, "\x00\x1b\u202e") || strings.Contains(out, "\xff") {
			t.Errorf("raw bytes of a name are shown:\n%.2000q", out)
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(w.logText()), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is broken: %q", line)
		}
	}
	if _, err := os.Lstat(filepath.Join(w.repo, "pwned")); err == nil {
		t.Error("a name was run")
	}
	if grown := w.peakMB() - before; grown > 64 {
		t.Errorf("the daemon took %d MB more", grown)
	} else {
		t.Logf("daemon memory at most %d MB more than the %d before", grown, before)
	}
	w.well()
}

// moved reports whether no file is on its way out of the inbox.
func (w *inboxBox) moved() bool {
	out, err := w.try(w.bin, "log", "--all")
	return err == nil && strings.Count(out, " rejected: ")+strings.Count(out, " taken in\n") == strings.Count(out, "file moved out of the inbox")
}

// lying are the names of the files in the inbox, dotfiles and folders left out.
func (w *inboxBox) lying() (names []string) {
	w.t.Helper()
	entries, err := os.ReadDir(w.inbox())
	w.must(err)
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// A hundred copies of a signal, and the same word for other attempts, from before, out of turn: the first for the attempt
// that lives counts, the step after it runs once, and each other is refused with its reason.
func TestWatchCopies(t *testing.T) {
	conform.Rule(t, "2-files signal 5", "the first of 100 copies counts; stale, early and foreign ones are refused")
	t.Parallel()
	const copies = 100
	w := newInbox(t, watchSettings)
	w.served()
	early := time.Now().Add(-time.Minute)
	w.drop(sentinel, `{"status": "failed"}`) // nothing waits for it yet
	eventually(t, "the early one is refused", func() bool { return w.rejected() == 1 })
	w.must(os.RemoveAll(w.inbox("rejected")))
	run := w.offered()
	stale := map[string]string{
		"to attempt 7": `{"status": "failed", "attempt": 7}`, "w-9": `{"status": "failed", "run": "w-9"}`, "X-9": `{"status": "failed", "step": "X-9"}`,
		"token": `{"status": "failed", "token": "0123456789abcdef0123456789abcdef"}`, "written before": `{"status": "failed", "summary": "old"}`,
	}
	for why, text := range stale {
		w.put("old", text)
		if why == "written before" {
			w.must(os.Chtimes(filepath.Join(w.work, "old"), early, early))
		}
		w.must(os.Rename(filepath.Join(w.work, "old"), w.inbox(sentinel)))
		eventually(t, "refused: "+why, func() bool { // the reason is written after the file has moved
			out, _ := exec.Command("sh", "-c", "cat "+w.inbox("rejected")+"/*.why").Output()
			return len(w.lying()) == 0 && strings.Contains(string(out), why)
		})
		if r, _ := w.run(); !r.Live() || r.Steps[0].State != "running" {
			t.Fatalf("%s: it counted", why)
		}
	}
	w.must(os.RemoveAll(w.inbox("rejected")))
	for i := range copies { // most in the inbox of all runs, some in this run's
		name := sentinel
		if i%10 == 1 {
			name = filepath.Join(run, sentinel)
		}
		w.must(os.MkdirAll(w.inbox(run), 0o755))
		w.drop(name, `{"status": "done"}`)
		if i == 0 {
			w.passesOnce(run)
		}
		for until := time.Now().Add(waitMost); ; time.Sleep(time.Millisecond) {
			if _, err := os.Lstat(w.inbox(name)); err != nil {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("copy %d stays", i)
			}
		}
	}
	eventually(t, "each other is refused", func() bool { return w.rejected() == copies-1 })
	w.ends("copied", run)
	if n := strings.Count(w.do(w.bin, "log", "--all", run), "says done ("+sentinel); n != 1 {
		t.Errorf("taken in %d times", n)
	}
}

// passesOnce waits until the step has been passed.
func (w *inboxBox) passesOnce(run string) {
	w.t.Helper()
	eventually(w.t, "the first one counts", func() bool {
		r, ok := w.run()
		return ok && r.ID == run && r.Steps[0].State == "passed"
	})
}

// An agent answers at once, attempt after attempt, under one name: no answer is taken for one that was begun before.
func TestWatchSameNameAgain(t *testing.T) {
	t.Parallel()
	const attempts = 30
	w := newInbox(t, strings.Replace(quickSettings, "ACTS", abs("testdata/act.sh"), 1))
	w.put("acts/Y-1", "echo $SLUICE_ATTEMPT >n.txt\nsay '{\"status\": \"done\"}'\n")
	w.put("repo/.workflow/specs/again.yaml", fmt.Sprintf(`workflow: {id: again}
steps:
  - {id: Y-1, agent: {type: a}, signal: {type: sentinel_file}, gate: YG-1}
gates:
  - {id: YG-1, reviewer: {level: auto, run: test "$SLUICE_ATTEMPT" -ge %d}, on_pass: {next_step: DONE}, max_retries: %d}
`, attempts, attempts+1))
	w.do("git", "add", "-A")
	w.do("git", "commit", "-qm", "again")
	w.served()
	w.do(w.bin, "start", "again")
	eventually(t, "the run ends", func() bool {
		r, ok := w.run()
		if ok && len(r.Waits) > 0 && r.Waits[0].Kind == "human" {
			t.Fatalf("%+v\n%s", r.Waits[0], w.do(w.bin, "log", "--all"))
		}
		return ok && r.Phase == "completed"
	})
	if n := w.rejected(); n != 0 {
		t.Errorf("%d answers were refused:\n%s", n, w.do(w.bin, "log", "--all"))
	}
}
