package pulls

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/forge"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Options are what Pulls need.
type Options struct {
	State  string // the repo's state folder
	Git    *git.Repo
	Env    []string                                        // the person's environment
	Remote func(ctx context.Context) (string, error)       // the address of origin
	Open   func(forge.Repo) *forge.Hub                     // nil = by gh, in Env
	Wait   func(ctx context.Context, d time.Duration) bool // false if ctx ended first; nil = health.Wait

	// What a Request does not need.
	Notes  *health.Notes
	Onto   func(run string) (string, error)                          // the full name of the branch that a run began from
	Digest func(ctx context.Context, q job.Reviewed) (string, error) // see engine.Answered
	Poll   func() time.Duration                                      // between two looks
	Now    func() time.Time
}

// Pulls are the pull requests of one repo's runs. It is safe for concurrent use.
type Pulls struct {
	opt  Options
	take func(engine.Event) (why string, err error)

	mu   sync.Mutex // also held while a record changes
	hub  *forge.Hub
	says map[string]string // what a round waits for, by run and gate
}

// New returns the pull requests of a repo's runs.
func New(o Options) *Pulls {
	if o.Wait == nil {
		o.Wait = health.Wait
	}
	if o.Open == nil {
		o.Open = func(r forge.Repo) *forge.Hub { return forge.Open(r, forge.Options{Env: o.Env, Now: o.Now}) }
	}
	return &Pulls{opt: o, says: map[string]string{}}
}

// Hear sets what people's answers are passed to, before the first Watch. take returns once the decision is on the
// record: why it does not count; "" = it does. On an error nothing is recorded.
func (p *Pulls) Hear(take func(engine.Event) (why string, err error)) { p.take = take }

// Awaits says what an open round of a gate waits for at the forge; "" = nothing is known.
func (p *Pulls) Awaits(run, gate string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.says[run+"/"+gate]
}

func (p *Pulls) say(run, gate, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if what == "" {
		delete(p.says, run+"/"+gate)
		return
	}
	p.says[run+"/"+gate] = what
}

// at returns the repo at its forge, and the remote's address.
func (p *Pulls) at(ctx context.Context) (*forge.Hub, string, error) {
	hub, address, err := p.Forge(ctx)
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return nil, "", stuck(f.Advice, "no pull request: %s", f.Cause)
	case err != nil:
		return nil, "", fmt.Errorf("no pull request: %w", err)
	}
	return hub, address, nil
}

// Forge returns the repo at its forge, and the remote's address. All who ask share its rate limit.
func (p *Pulls) Forge(ctx context.Context) (*forge.Hub, string, error) {
	if p.opt.Git == nil {
		return nil, "", fault.New("run git init, and give the repo a remote", "this is no git repo")
	}
	address, err := p.opt.Remote(ctx)
	if err != nil {
		return nil, "", err
	}
	if address == "" {
		return nil, "", fault.New("git remote add origin ADDRESS", "the repo has no remote named origin")
	}
	repo, err := repoAt(address, p.opt.Env)
	if err != nil {
		return nil, "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hub == nil || p.hub.Repo != repo {
		p.hub = p.opt.Open(repo)
	}
	return p.hub, address, nil
}

// repoAt returns the repo that an address names. GH_REPO ([HOST/]OWNER/NAME), gh's own variable,
// names it for an address that is no forge's, such as a mirror on this machine.
func repoAt(address string, env []string) (forge.Repo, error) {
	repo, err := forge.ParseRepo(address)
	if err == nil {
		return repo, nil
	}
	for _, kv := range slices.Backward(env) {
		if named, ok := strings.CutPrefix(kv, "GH_REPO="); ok && named != "" {
			if strings.Count(named, "/") == 1 {
				named = "github.com/" + named
			}
			return forge.ParseRepo("https://" + named)
		}
	}
	return repo, err
}

// Limits of a record.
const (
	maxPushed = 100
	maxTaken  = 5000
)

// record is what is kept of a run's pull request.
type record struct {
	Number  int      `json:"number,omitempty"`
	URL     string   `json:"url,omitempty"`
	Title   string   `json:"title,omitempty"`  // as sluice gave it
	Pushed  []string `json:"pushed,omitempty"` // commits, noted before each push
	Shown   []string `json:"shown,omitempty"`  // those whose push was seen to succeed
	Threads []thread `json:"threads,omitempty"`
	Asked   []string `json:"asked,omitempty"` // who was asked for a review; "labels", "ready"
	Taken   []int64  `json:"taken,omitempty"` // comments that were dealt with
	Told    []string `json:"told,omitempty"`  // outsiders who were told that their words do not count
	Issue   int64    `json:"issue,omitempty"` // the comment on the issue
	Stands  string   `json:"stands,omitempty"`
}

// thread is a comment on a line that the work was sent back for.
type thread struct {
	ID     int64  `json:"id"`
	Commit string `json:"commit"` // which was commented on
	By     string `json:"by"`
}

func (p *Pulls) file(run string) string {
	return filepath.Join(p.opt.State, layout.AttemptsDir, layout.PathElement(run), "pull.json")
}

func (p *Pulls) load(run string) (r record, err error) {
	if err = layout.Load(p.file(run), &r); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return r, err
}

// Address returns the address of a run's pull request, as it was when sluice last dealt with it; "" = it has
// none. state is the repo's state folder.
func Address(state, run string) string {
	r, err := New(Options{State: state}).load(run)
	if err != nil {
		return "" // whoever needs it reports that
	}
	return r.URL
}

// note changes and saves a run's record.
func (p *Pulls) note(run string, change func(*record)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.load(run)
	if err != nil {
		return err
	}
	change(&r)
	r.Pushed, r.Shown = newest(r.Pushed, maxPushed), newest(r.Shown, maxPushed)
	r.Taken = newest(r.Taken, maxTaken)
	r.Told = newest(r.Told, maxTaken)
	return layout.Save(p.file(run), r)
}

func newest[T any](list []T, most int) []T { return list[max(len(list)-most, 0):] }

// stuck is what a person has to do something about.
func stuck(do, format string, args ...any) error {
	return &tree.Stuck{Why: git.OneLine(fmt.Sprintf(format, args...)), Do: do}
}

// last reports whether nothing follows the gate in its workflow.
func last(g *engine.Gate) bool {
	return g.NextGate == "" && !slices.ContainsFunc(g.OnPass, func(to string) bool { return !engine.IsEnd(to) })
}

// Backoff of looks that fail.
const (
	againFirst = 2 * time.Second
	againMost  = 5 * time.Minute
)

// pace says when to look again.
type pace struct{ fails int }

// after returns the wait after a look that ended with err.
func (c *pace) after(err error, poll time.Duration) time.Duration {
	if err == nil {
		c.fails = 0
		return poll
	}
	c.fails++
	wait := min(againFirst<<min(c.fails, 10), againMost)
	if f := forge.FaultOf(err); f != nil && f.Wait > wait {
		wait = f.Wait
	}
	return wait
}
