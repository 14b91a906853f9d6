package triggers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/tools/conform"
	"sluice/watcher"
)

// bench is Triggers over a folder, and what they report.
type bench struct {
	*testing.T
	*Triggers
	root  string
	fired chan engine.Fired
	armed string // the digest that Read returns
}

func newBench(t *testing.T, repo *git.Repo, root string) *bench {
	b := &bench{T: t, root: root, fired: make(chan engine.Fired, 100_000), armed: "d"}
	var looks atomic.Int64
	w := watcher.New(watcher.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	b.Triggers = New(Options{Root: root, Notes: &health.Notes{Log: t.Logf}, Git: repo, Watcher: w, Matches: matches,
		Every: func() time.Duration { return 20 * time.Millisecond }, Poll: func() time.Duration { return time.Millisecond },
		Now:     func() time.Time { return time.Now().Add(time.Duration(looks.Add(1)) * quiet) }, // nothing is being written
		Address: func(ctx context.Context) (string, error) { return repo.RemoteURL(ctx, "origin") },
		Read: func(context.Context, string, map[string]any) (engine.RunRequested, string, error) {
			return engine.RunRequested{Source: "s"}, b.armed, nil
		},
		Trees: func(context.Context, *engine.Spec) map[string]string { return map[string]string{"w": "key"} }})
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case name := <-w.Hints():
				b.Hint(name)
			}
		}
	})
	t.Cleanup(func() { cancel(); done.Wait(); w.Close() })
	return b
}

// matches matches a glob whose ** stands at its end.
func matches(glob, name string) bool {
	if dir, ok := strings.CutSuffix(glob, "/**"); ok {
		return strings.HasPrefix(name, dir+"/")
	}
	ok, err := path.Match(glob, name)
	return ok && err == nil
}

// listen looks for the trigger until the test, or the returned function, ends it.
func (b *bench) listen(of *engine.Trigger, tips map[string]string) (stop func()) {
	of.Name = of.Kind
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	j := job.Job{Effect: engine.Effect{Kind: engine.DoListen, Key: "w/" + of.Kind, Armed: "w", Trigger: of.Name, N: 7},
		Spec: &engine.Spec{On: &engine.On{Triggers: []*engine.Trigger{of}}}, Tips: tips}
	done.Go(func() { b.Listen(ctx, j, func(ev engine.Event) { b.fired <- ev.(engine.Fired) }) })
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	b.Cleanup(stop)
	return stop
}

// next waits for n reports and returns them, sorted: KEY, or KEY!WHY of one that does not count.
func (b *bench) next(n int) string {
	b.Helper()
	var out []string
	for range n {
		select {
		case f := <-b.fired:
			if f.Workflow != "w" || f.Armed != 7 {
				b.Fatalf("%+v", f)
			}
			name, _, _ := strings.Cut(f.Key, "@")
			if f.Skip != "" {
				name += "!" + f.Skip[:2]
			}
			out = append(out, name)
		case <-time.After(time.Minute):
			b.Fatalf("nothing fires after %s; notes %v", out, b.All())
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (b *bench) put(name, content string) {
	b.Helper()
	file := filepath.Join(b.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) want(got, want string) {
	b.Helper()
	if got != want {
		b.Errorf("got %q, want %q", got, want)
	}
}

// TestFiles: new and changed files are reported, also those of a folder made later; links, .git and
// .workflow are not entered.
func TestFiles(t *testing.T) {
	conform.Rule(t, "12-triggers file", "new and changed files")
	conform.Rule(t, "12-triggers there", "what is there")
	b := newBench(t, nil, t.TempDir())
	for _, name := range []string{"in/a.md", "in/b.txt", ".git/c.md", ".workflow/in/d.md", "other/e.md"} {
		b.put(name, name)
	}
	if err := os.Symlink("../other/e.md", filepath.Join(b.root, "in/link.md")); err != nil {
		t.Fatal(err)
	}
	of := &engine.Trigger{Kind: engine.OnFiles, Globs: []string{"in/*.md", "late/**", "**/c.md", ".workflow/**"}}
	was, err := b.Present(t.Context(), &engine.Spec{On: &engine.On{Triggers: []*engine.Trigger{of}}})
	if err != nil || len(was) != 1 || !strings.HasPrefix(was[0].Key, "in/a.md@") {
		t.Fatalf("%+v: %v", was, err)
	}
	b.listen(of, nil)
	b.want(b.next(1), "in/a.md") // the engine knows it
	b.put("in/f.md", "f")
	b.want(b.next(1), "in/f.md")
	b.put("in/a.md", "changed")
	b.want(b.next(1), "in/a.md")
	b.put("late/deep/g", "g")
	b.want(b.next(1), "late/deep/g")
	if n := len(b.fired); n > 0 {
		t.Errorf("%d more: %+v", n, <-b.fired)
	}
}

// TestManyFiles: 10,000 at once are each reported, once.
func TestManyFiles(t *testing.T) {
	conform.Rule(t, "12-triggers many", "each is reported, once")
	b := newBench(t, nil, t.TempDir())
	const many = 10_000
	for i := range many {
		b.put(fmt.Sprintf("in/%d", i%100)+fmt.Sprintf("/%d.md", i), "x")
	}
	b.listen(&engine.Trigger{Kind: engine.OnFiles, Globs: []string{"in/**"}}, nil)
	seen := map[string]bool{}
	for name := range strings.FieldsSeq(b.next(many)) {
		seen[name] = true
	}
	if len(seen) != many || len(b.fired) > 0 {
		t.Errorf("%d files, and %d reports more", len(seen), len(b.fired))
	}
}

// TestWrittenNow: a file that is being written is reported when it rests, also where its times are those
// of a file server whose clock is off.
func TestWrittenNow(t *testing.T) {
	b := newBench(t, nil, t.TempDir())
	for _, off := range []time.Duration{0, time.Hour, -time.Hour} {
		look := fileLook{t: b.Triggers, globs: []string{"in/*"}, known: map[string]sight{}}
		began, reported := time.Now(), 0
		for i, c := range []struct {
			after    time.Duration
			write    string
			soon     bool
			reported int
		}{{0, "a", true, 0}, {quiet, "half", true, 0}, {2*quiet - 1, "", true, 0}, {2 * quiet, "", false, 1}, {3 * quiet, "", false, 1}} {
			if c.write != "" {
				b.put("in/a", c.write)
				at := began.Add(c.after + off)
				if err := os.Chtimes(filepath.Join(b.root, "in/a"), at, at); err != nil {
					t.Fatal(err)
				}
			}
			b.opt.Now = func() time.Time { return began.Add(c.after) }
			soon, err := look.now(t.Context(), func(string, string) { reported++ })
			if soon != c.soon || err != nil || reported != c.reported {
				t.Errorf("clock off by %s, look %d: %t, %d: %v", off, i, soon, reported, err)
			}
		}
	}
}

// TestPush: commits here and at the remote are reported by branch; with paths, one that changes none
// of them is remembered only.
func TestPush(t *testing.T) {
	conform.Rule(t, "12-triggers push", "commits here and at the remote")
	root := t.TempDir()
	run := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	commit := func(dir, file string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(file+dir), 0o644); err != nil {
			t.Fatal(err)
		}
		run(dir, "add", "-A")
		run(dir, "commit", "-q", "-m", file)
	}
	remote, other := t.TempDir(), t.TempDir()
	run(remote, "init", "-q", "--bare", "-b", "main")
	run(root, "init", "-q", "-b", "main")
	commit(root, "a.go")
	run(root, "remote", "add", "origin", remote)
	run(root, "push", "-q", "origin", "main")
	repo, err := git.OpenWith(t.Context(), root, git.Options{Scratch: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	b := newBench(t, repo, root)
	of := &engine.Trigger{Kind: engine.OnPush, Branches: []string{"main", "release/*"}, Name: "push"}
	was, err := b.Present(t.Context(), &engine.Spec{On: &engine.On{Triggers: []*engine.Trigger{of}}})
	if err != nil || len(was) < 1 || !strings.HasPrefix(was[0].Key, "main@") {
		t.Fatalf("%+v: %v", was, err)
	}
	run(root, "remote", "set-url", "origin", remote+"/gone")
	if was, err := b.Present(t.Context(), &engine.Spec{On: &engine.On{Triggers: []*engine.Trigger{of}}}); err == nil ||
		!strings.Contains(err.Error(), "cannot ask the remote") {
		t.Errorf("armed with a remote that is away: %+v: %v", was, err)
	}
	run(root, "remote", "set-url", "origin", remote)
	stop := b.listen(of, nil)
	b.want(b.next(1), "main")
	commit(root, "b.go")
	b.want(b.next(1), "main")
	run(root, "branch", "release/1")
	run(root, "branch", "sluice/w-1")
	run(root, "branch", "wip")
	b.want(b.next(1), "release/1")
	stop()
	run(other, "clone", "-q", remote, ".")
	commit(other, "c.go")
	run(other, "push", "-q", "origin", "main")
	b.listen(of, nil)                             // it begins with a look at the remote
	b.want(b.next(4), "main main main release/1") // the remote, what is known of it here, and here

	_, tip, _ := strings.Cut(was[0].Key, "@")
	p := newBench(t, repo, root)
	p.listen(&engine.Trigger{Kind: engine.OnPush, Branches: []string{"main"}, Paths: []string{"*.md"}},
		map[string]string{"main": tip})
	p.want(p.next(1), "main!it") // the tip that was decided on, and a file that is no *.md
	commit(root, "d.md")
	p.want(p.next(1), "main")
}

// TestFireHeld: a firing starts no run while the spec is another than the one that was armed.
func TestFireHeld(t *testing.T) {
	conform.Rule(t, "12-triggers armed", "another text than the armed one starts nothing")
	b := newBench(t, nil, t.TempDir())
	b.armed = "changed"
	j := job.Job{Effect: engine.Effect{Kind: engine.DoFire, Key: "w/files/a@1", Armed: "w", Trigger: "files",
		Firing: &engine.Firing{Trigger: "files", Key: "a@1"}}, Armed: "d"}
	ctx, cancel := context.WithCancel(t.Context())
	ev := b.Fire(ctx, j, func(ev engine.Event) {
		if held, ok := ev.(engine.FiringHeld); !ok || !strings.Contains(held.Why, "has changed since it was armed") {
			t.Errorf("%+v", ev)
		}
		cancel()
	})
	if ev != nil {
		t.Errorf("%+v", ev)
	}
	b.armed = "d"
	if ev, ok := b.Fire(t.Context(), j, nil).(engine.FiringRead); !ok || ev.Key != "a@1" || ev.Run.Source != "s" || ev.Run.Trees["w"] != "key" {
		t.Errorf("%+v", ev)
	}
}

// TestSwapped: a file that became a pipe or a link since the look began holds up nothing and names no other file.
func TestSwapped(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("/etc/passwd", link)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{pipe, link} {
		done := make(chan error, 1)
		go func() {
			_, err := digestOf(t.Context(), file)
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s has a digest", file)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s is waited for", file)
		}
	}
}
