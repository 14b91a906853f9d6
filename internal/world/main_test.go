//go:build linux || darwin

package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/agents"
	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/settings"
	"sluice/notify"
	"sluice/specs"
	"sluice/watcher"
)

const (
	shimArg = "world-test-shim"
	waitFor = 60 * time.Second // no test waits so long unless it fails
)

// The test binary is the shim too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == shimArg {
		os.Exit(agents.ShimMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// bench is a real repo with a real world.
type bench struct {
	t        *testing.T
	root     string
	state    string
	git      *git.Repo
	settings settings.Settings
	spec     *engine.Spec
	e        *World
	notifier *notify.Notifier // nil: no notices
	terminal func(ctx context.Context, dir string, args []string) error
}

// newBench makes a repo with one commit; the spec is of workflow `w`. Tests with one run beside each other.
func newBench(t *testing.T, spec string) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{t: t, root: realPath(t, t.TempDir()), state: filepath.Join(realPath(t, t.TempDir()), "state")}
	b.terminal = func(context.Context, string, []string) error { return errors.New("no terminal") }
	b.sh("git init -q -b main . && git config user.name T && git config user.email t@example.org && git config commit.gpgsign false")
	b.put(".workflow/.gitignore", "signals/\nruns/\nretry-context/\nbacklog/\n")
	b.put("README.md", "hello\n")
	b.sh("git add -A && git commit -q -m first")
	repo, err := git.OpenWith(t.Context(), b.root, git.Options{Scratch: filepath.Join(t.TempDir(), "scratch")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	b.git = repo
	b.settings = settings.Default()
	b.settings.Settle = engine.Duration(50 * time.Millisecond)
	b.settings.KillAfter = engine.Duration(time.Second)
	b.settings.PRPoll = engine.Duration(100 * time.Millisecond)
	b.load(spec)
	b.e = b.executor()
	return b
}

func (b *bench) load(spec string) {
	b.t.Helper()
	s, faults := specs.Load("w.yaml", []byte(spec))
	if len(faults) > 0 {
		b.t.Fatal(faults)
	}
	b.spec = s
}

// executor makes one more World over the same folders, as after a restart.
func (b *bench) executor(change ...func(*Options)) *World {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	w := watcher.New(watcher.Options{Settle: 50 * time.Millisecond})
	o := Options{
		Root: b.root, State: b.state, Git: b.git, Watcher: w,
		Runner:   agents.New(agents.Options{Shim: []string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0", self, shimArg}, Logf: b.t.Logf}),
		Settings: func() settings.Settings { return b.settings },
		Fresh:    func(context.Context) {},
		Now:      time.Now,
		Unheld:   &launch.Unheld{},
		Environ:  []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.root, "SECRET=s3cret", "MY_KEY=k"},
		Logf:     func(f string, a ...any) { b.t.Logf("log: "+f, a...) },
		Notifier: func() *notify.Notifier { return b.notifier },
		Terminal: func(ctx context.Context, dir string, args []string) error { return b.terminal(ctx, dir, args) },
	}
	for _, c := range change {
		c(&o)
	}
	e, err := New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	routed := make(chan struct{})
	go func() {
		defer close(routed)
		for {
			select {
			case name := <-w.Hints():
				e.Hint(name)
			case <-ctx.Done():
				return
			}
		}
	}()
	b.t.Cleanup(func() { cancel(); <-routed; e.Close(); w.Close() })
	return e
}

func realPath(t *testing.T, p string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// sh runs a script in the root.
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

// script makes an agent `name` of a shell script, and the role `*` its.
func (b *bench) script(name, text string) {
	b.put("agents/"+name, "#!/bin/sh\n"+text)
	if err := os.Chmod(b.path("agents/"+name), 0o755); err != nil {
		b.t.Fatal(err)
	}
	b.settings.Agents[name] = settings.Agent{Command: []string{"./agents/" + name}, Env: []string{"MY_*"}}
	b.settings.Roles[settings.AnyRole] = settings.Role{Agent: []string{name}}
}

const run1 = "w-1"

// stepJob is the effect of launch k of attempt n of a step.
func (b *bench) stepJob(step string, n, k int) job.Job {
	key := fmt.Sprintf("%s/%s#%d.%d", run1, step, n, k)
	return b.job(engine.Effect{Kind: engine.DoRun, Key: key, Step: step, N: n, K: k,
		Proc: &engine.Proc{Key: key, Kind: engine.ProcStep, Step: step, N: n, K: k, Tree: "."}})
}

func (b *bench) checkJob(step string, n int) job.Job {
	key := fmt.Sprintf("%s/%s#%d.check-%d", run1, step, n, 40+n)
	return b.job(engine.Effect{Kind: engine.DoRun, Key: key, Step: step, N: n,
		Proc: &engine.Proc{Key: key, Kind: engine.ProcCheck, Step: step, N: n, Tree: "."}})
}

func (b *bench) reviewJob(gate string, n int) job.Job {
	key := fmt.Sprintf("%s/%s#%d.1", run1, gate, n)
	g := b.spec.Gate(gate)
	j := b.job(engine.Effect{Kind: engine.DoRun, Key: key, Step: g.Step, Gate: gate, N: n, K: 1,
		Proc: &engine.Proc{Key: key, Kind: engine.ProcReview, Step: g.Step, Gate: gate, N: n, K: 1, Tree: "."}})
	j.Round = &engine.Round{N: n, Step: g.Step, Attempt: 1}
	j.Attempt.N = 1
	return j
}

func (b *bench) job(f engine.Effect) job.Job {
	f.Run = run1
	j := job.Job{Effect: f, Spec: b.spec, Config: engine.DefaultConfig(), Vars: map[string]any{"goal": "a'b\n", "n": 3.0},
		RunInfo: job.RunInfo{ID: run1, Workflow: "w", Phase: engine.RunRunning}}
	if st := b.spec.Step(f.Step); st != nil {
		j.Attempt = &engine.Attempt{N: f.N, K: f.K, State: engine.Running, Tree: ".", Reads: st.Reads(), Key: f.Key, SignalType: st.Signal.Type, SignalValue: st.Signal.Value, Status: engine.StatusDone}
		if st.Agent != nil {
			j.Attempt.Worktree = filepath.Clean(st.Agent.Worktree.Source)
			if j.Attempt.Worktree == "." {
				j.Attempt.Worktree = ""
			}
		}
	}
	j.Env = &engine.Env{Run: run1, Workflow: "w", Vars: j.Vars, Step: f.Step, Attempt: f.N, Steps: map[string]engine.StepEnv{}, Gates: map[string]engine.GateEnv{}}
	return j
}

func (b *bench) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitFor)
	b.t.Cleanup(cancel)
	return ctx
}

// carry carries out a process to its end.
func (b *bench) carry(j job.Job) engine.ProcessEnded {
	b.t.Helper()
	ev, ok := b.e.Carry(b.ctx(), j, func(engine.Event) {}).(engine.ProcessEnded)
	if !ok {
		b.t.Fatalf("%s: no end; health: %v", j.Key, b.e.Health())
	}
	if ev.Run != j.Run || ev.Key != j.Key {
		b.t.Errorf("it is of %s %s", ev.Run, ev.Key)
	}
	return ev
}

// eventually polls for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for until := time.Now().Add(waitFor); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}

func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}
