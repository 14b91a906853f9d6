package pulls_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/pulls"
	"sluice/tools/forgestub"
)

const branch = "sluice/x-1"

// rig is a repo with a run's commits, its forge, and the pull requests of its runs.
type rig struct {
	t     *testing.T
	dir   string
	f     *forgestub.Forge
	p     *pulls.Pulls
	notes *health.Notes
	state string
	env   []string
	repo  *git.Repo

	// the loop's decision on an answer; nil: it counts
	decides func(engine.Answered) (why string, err error)

	mu     sync.Mutex
	events []engine.Event
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	f, env := forgestub.Start(t)
	return rigOver(t, f, env)
}

func rigOver(t *testing.T, f *forgestub.Forge, env []string) *rig {
	t.Helper()
	r := &rig{t: t, f: f, dir: t.TempDir(), state: t.TempDir(), notes: &health.Notes{}}
	f.Permit("bob", "write")
	f.Permit("carl", "write")
	r.env = append(env, "GH_REPO="+f.Host()+"/"+forgestub.Owner+"/"+forgestub.Name)
	r.git("init", "-q", "-b", "main")
	r.commit("first")
	r.git("push", "-q", f.Bare, "main")
	var err error
	if r.repo, err = git.Open(t.Context(), r.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.repo.Close() })
	r.open()
	return r
}

// open is a start of the daemon.
func (r *rig) open(change ...func(*pulls.Options)) {
	o := pulls.Options{State: r.state, Git: r.repo, Env: r.env, Notes: r.notes,
		Remote: func(context.Context) (string, error) { return r.f.Bare, nil },
		Onto:   func(string) (string, error) { return "refs/heads/main", nil },
		Digest: func(_ context.Context, q job.Reviewed) (string, error) { return q.Digest, nil },
		Poll:   func() time.Duration { return 100 * time.Millisecond }, Now: time.Now}
	for _, c := range change {
		c(&o)
	}
	r.p = pulls.New(o)
	r.p.Hear(func(ev engine.Event) (why string, err error) {
		if r.decides != nil {
			why, err = r.decides(ev.(engine.Answered))
		}
		if why == "" && err == nil {
			r.tell(ev)
		}
		return why, err
	})
}

func (r *rig) tell(ev engine.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
}

func (r *rig) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit makes a commit of the run and returns it.
func (r *rig) commit(subject string) string {
	r.t.Helper()
	r.git("commit", "-q", "--allow-empty", "-m", subject)
	return r.git("rev-parse", "HEAD")
}

func spec() *engine.Spec {
	return &engine.Spec{ID: "x", Gates: []*engine.Gate{
		{ID: "GB", Step: "B", Reviewer: engine.Reviewer{Level: engine.LevelAuto, Forge: []string{engine.ForgeChecks, engine.ForgeReviews}}, NextGate: "GC"},
		{ID: "GC", Step: "B", Reviewer: engine.Reviewer{Level: engine.LevelHuman, Approvers: []string{"forge:ann", "forge:" + forgestub.Me}},
			OnPass: []string{engine.EndDone}, Routes: []engine.Route{{Outcome: "replan", To: "B"}}},
	}}
}

// job is a round of a gate over a commit.
func (r *rig) job(gate, commit string, n int) job.Job {
	q := engine.Round{N: n, Step: "B", Attempt: n, State: engine.OnReview, Digest: commit, Opened: time.Now().Add(-time.Second)}
	if gate == "GC" {
		q.State, q.Trust = engine.OnHuman, engine.TrustForge
	}
	return job.Job{Effect: engine.Effect{Run: "x-1", Key: "x-1/" + gate, Proc: &engine.Proc{Gate: gate}}, Spec: spec(), Round: &q,
		Config:  engine.DefaultConfig(),
		Attempt: &engine.Attempt{N: n, Digest: commit, Summary: "done @everyone"},
		RunInfo: job.RunInfo{ID: "x-1", Phase: engine.RunRunning},
		Made: &job.Made{Run: "x-1", Title: "Dates", Branch: branch, Vars: map[string]any{"goal": "read dates"},
			Did:    []job.Did{{Step: "B", Summary: "all of it, closes #9 @bob"}},
			Rounds: []job.MadeRound{{Round: q, Gate: gate, Own: true}}}}
}

// judge begins the forge's judging; the verdict comes on the channel.
func (r *rig) judge(j job.Job) (<-chan *engine.ProcessEnded, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.t.Context())
	out := make(chan *engine.ProcessEnded, 1)
	go func() { out <- r.p.Judge(ctx, j) }()
	r.t.Cleanup(cancel)
	return out, cancel
}

// watch follows the pull request until the test ends.
func (r *rig) watch(j job.Job) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.p.Watch(ctx, j, r.tell)
	}()
	r.t.Cleanup(func() { cancel(); <-done })
}

func (r *rig) emitted() []engine.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]engine.Event{}, r.events...)
}

func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !cond(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("never: %s; notes %v; comments %v", what, r.notes.All(), r.f.Comments(1))
		}
	}
}

func (r *rig) ended(ch <-chan *engine.ProcessEnded) *engine.ProcessEnded {
	r.t.Helper()
	select {
	case ev := <-ch:
		if ev == nil {
			r.t.Fatal("no verdict")
		}
		return ev
	case <-time.After(2 * time.Minute):
		r.t.Fatalf("no verdict: %v %s", r.notes.All(), r.p.Awaits("x-1", "GB"))
		return nil
	}
}

func (r *rig) pull(n int) forgestub.M {
	r.t.Helper()
	all := r.f.Pulls()
	if len(all) < n {
		r.t.Fatalf("%d pull requests", len(all))
	}
	return all[n-1]
}

func (r *rig) file() string { return filepath.Join(r.state, "attempts", "x-1", "pull.json") }
