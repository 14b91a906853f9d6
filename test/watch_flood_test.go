//go:build linux

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/setup"
	"sluice/internal/workspace"
	"sluice/tools/conform"
)

// How many files nothing waits for are beside the one that counts. The kernel's queue has room for
// 16,384 events, so more must come while the daemon stands still; while it is down there is no
// queue, and SLUICE_FLOOD says how many.
const (
	floodStopped = 20_000
	floodDown    = 2_000
)

// floods returns how many files are written where their number proves nothing by itself.
func floods(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SLUICE_FLOOD")
	if text == "" {
		return floodDown
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 {
		t.Fatalf("SLUICE_FLOOD=%q: want a number", text)
	}
	return n
}

// inMemory puts the test's folders into memory if possible: it writes very many files.
func inMemory(t *testing.T) {
	t.Helper()
	if workspace.IsDir("/dev/shm") {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

// flood writes n files that nothing waits for.
func (w *inboxBox) flood(prefix string, n int) {
	w.t.Helper()
	for i := range n {
		w.must(os.WriteFile(w.inbox(fmt.Sprintf("%s%06d-done.json", prefix, i)), []byte("{}"), 0o644))
	}
}

// emptied waits until no file is left in the inbox, and says how long that took.
func (w *inboxBox) emptied(want int) {
	w.t.Helper()
	began := time.Now()
	deadline := began.Add(6 * waitMost)
	for {
		left := 0
		entries, err := os.ReadDir(w.inbox())
		w.must(err)
		for _, e := range entries {
			if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				left++
			}
		}
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d files are left in the inbox", left)
		}
		time.Sleep(10 * pollEvery)
	}
	if got := w.rejected(); got != want {
		w.t.Errorf("%d files in rejected/, want %d", got, want)
	}
	w.t.Logf("%d files were cleared away in another %s; daemon memory at most %d MB", want, time.Since(began).Round(time.Millisecond), w.peakMB())
}

// another has the daemon serve a second repo, in which a step is offered.
func (w *inboxBox) another() (repo string) {
	w.t.Helper()
	w.put("other/.workflow/specs/w.yaml", strings.Replace(watchSpec, "../done", "../other-done", 1))
	w.put("other/.workflow/.gitignore", setup.Ignored)
	repo = filepath.Join(w.work, "other")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "start"}} {
		w.do("git", append([]string{"-C", repo}, args...)...)
	}
	w.do(w.bin, "-C", repo, "watch", "add")
	w.do(w.bin, "-C", repo, "start", "w")
	eventually(w.t, "the other repo's step is offered", func() bool {
		return strings.Contains(w.do(w.bin, "-C", repo, "next"), "by hand")
	})
	return repo
}

// While the daemon stands still, or is down, 20,000 files come, the one that counts among them: it is taken in, the others
// are kept with their reasons, and the daemon lives on. A signal in another repo does not wait for them.
func TestWatchFlood(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "20,000 files while the daemon stood still, or was down: the one that counts is taken in")
	inMemory(t)
	w := newInbox(t, watchSettings)
	w.served()
	other := w.another()
	run := w.offered()
	w.must(w.last.Process.Signal(syscall.SIGSTOP))
	w.flood("A", floodStopped/2)
	w.drop(sentinel, `{"status": "done"}`)
	w.flood("Z", floodStopped/2)
	w.must(w.last.Process.Signal(syscall.SIGCONT))
	began := time.Now()
	w.put("other/.workflow/signals/"+sentinel, `{"status": "done"}`)
	eventually(t, "the other repo's run ends", func() bool {
		_, err := os.Lstat(filepath.Join(w.work, "other-done"))
		return err == nil
	})
	t.Logf("stopped: the other repo's run was at its end after %s, with %d files lying here", time.Since(began).Round(time.Millisecond), len(w.lying()))
	if len(w.lying()) == 0 {
		t.Error("the other repo had to wait until all files were dealt with")
	}
	w.passes("while it stood still", run)
	t.Logf("stopped: taken in after %s", time.Since(began).Round(time.Millisecond))
	w.emptied(floodStopped)
	if out := w.do(w.bin, "-C", other, "status"); !strings.Contains(out, "completed") {
		t.Errorf("the other repo:\n%s", out)
	}

	run = w.offered()
	w.kill()
	down := floods(t)
	w.must(os.RemoveAll(w.inbox("rejected")))
	w.flood("A", down/2)
	w.drop(sentinel, `{"status": "done"}`)
	w.flood("Z", down/2)
	began = time.Now()
	w.served()
	w.passes("while it was down", run)
	t.Logf("down: taken in after %s", time.Since(began).Round(time.Millisecond))
	w.emptied(down / 2 * 2)
	w.well()
}
