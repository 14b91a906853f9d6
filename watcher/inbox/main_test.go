//go:build linux || darwin

package inbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/watcher"
)

const (
	run1    = "w-1"
	waitFor = 60 * time.Second
)

// bench is a repo with its inboxes.
type bench struct {
	t           *testing.T
	root, state string
	settle      atomic.Int64
	x           *Inbox
}

// world says nothing of what a round is over, and that nothing is signed.
type world struct{}

func (world) DigestNow(context.Context, job.Reviewed) (string, error) { return "", nil }
func (world) Level(string) (level, why string)                        { return engine.TrustFile, "" }
func (world) SetLive(_, _ []string)                                   {}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{t: t, root: realPath(t, t.TempDir()), state: filepath.Join(realPath(t, t.TempDir()), "state")}
	b.settle.Store(int64(50 * time.Millisecond))
	b.put("README.md", "hello\n")
	l := layout.Layout{Root: b.root, State: b.state}
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	logf := func(f string, a ...any) { t.Logf("log: "+f, a...) }
	w := watcher.New(watcher.Options{Settle: 50 * time.Millisecond})
	x, err := New(Options{Layout: l, Notes: &health.Notes{Log: logf}, Watcher: w, Judge: world{}, Launches: world{}, Corrections: 2,
		Settle: func() time.Duration { return time.Duration(b.settle.Load()) }, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	b.x = x
	ctx, cancel := context.WithCancel(context.Background())
	routed := make(chan struct{})
	go func() {
		defer close(routed)
		for {
			select {
			case name := <-w.Hints():
				x.Hint(name)
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-routed; x.Unwatch(); w.Close() })
	return b
}

func realPath(t *testing.T, p string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func (b *bench) sh(script string) string {
	b.t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) path(rel string) string { return filepath.Join(b.root, filepath.FromSlash(rel)) }

func (b *bench) put(rel, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(rel)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(rel), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(rel string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.path(rel))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bench) has(rel string) bool {
	_, err := os.Lstat(b.path(rel))
	return err == nil
}

func (b *bench) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitFor)
	b.t.Cleanup(cancel)
	return ctx
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for until := time.Now().Add(waitFor); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}

// scanned returns what lies in the inboxes, when there is as much as wanted.
func (b *bench) scanned(in job.Inboxes, want int) []engine.FileSeen {
	b.t.Helper()
	var out []engine.FileSeen
	eventually(b.t, "as many files are seen", func() bool {
		evs, _, err := b.x.Scan(b.ctx(), in)
		if err != nil {
			b.t.Fatal(err)
		}
		out = nil
		for _, ev := range evs {
			if f, ok := ev.(engine.FileSeen); ok {
				out = append(out, f)
			}
		}
		return len(out) >= want
	})
	return out
}
