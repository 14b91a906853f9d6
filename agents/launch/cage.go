package launch

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sluice/agents/sandbox"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/memo"
	"sluice/internal/settings"
	"sluice/internal/tree"
)

// CageOptions are what a Cage needs. Git, Sandbox and Self are optional.
type CageOptions struct {
	Layout   layout.Layout
	Notes    *health.Notes
	Git      *git.Repo
	Settings func() settings.Settings
	Sandbox  func() (*sandbox.Box, error) // the sandbox, or why there is none; nil: launches are not held
	Unheld   *Unheld                      // shared by all repos
	Environ  []string                     // the daemon's environment
	Hidden   []string                     // sluice's folders, unseen by held launches, beside State
	Self     string                       // sluice's own binary
	Inboxes  Inboxes
	Vacate   func(pidFile string) // releases the checkout of a judge whose launch has ended
}

// Inboxes open and close the inboxes of held launches.
type Inboxes interface {
	OpenOwn(key string)
	CloseOwn(key string)
}

// Cage confines the launches of one repo: it decides what they see, and creates a private home, git
// folder and inbox for each.
type Cage struct {
	layout.Layout
	*health.Notes
	opt CageOptions

	mu       sync.Mutex
	liveRuns []string                // as of the last whole scan
	exposed  map[string]string       // runs with a launch that was not held -> why
	held     map[string]tree.Private // held launches -> their own git folder
	closed   bool

	based     memo.Memo[string, bool] // bases of runs that a ref keeps: pinning one again does no harm
	ahead     ahead                   // spares for coming launches
	leftovers leftovers               // of ended launches
	chores    sync.WaitGroup          // background work
}

// newCage returns the Cage of a repo. The caller closes it.
func newCage(o CageOptions) (*Cage, error) {
	x := &Cage{Layout: o.Layout, Notes: o.Notes, opt: o, exposed: map[string]string{}, held: map[string]tree.Private{},
		ahead:     ahead{dir: filepath.Join(o.Layout.State, layout.GitsDir, aheadFolder)},
		leftovers: leftovers{logf: o.Notes.Logf}}
	if err := x.recallOpen(); err != nil {
		return nil, err
	}
	o.Unheld.join(x)
	return x, nil
}

// Close waits for the background work.
func (x *Cage) Close() {
	x.opt.Unheld.leave(x)
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.Settle()
}

// Settle waits for the background work: removed folders and new spares.
func (x *Cage) Settle() {
	x.chores.Wait()
	x.leftovers.sweep()
}

// Variable returns a variable of the daemon's environment.
func (x *Cage) Variable(name string) string {
	for _, kv := range slices.Backward(x.opt.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// home returns the real path of the person's home; "" = there is none.
func (x *Cage) home() string {
	if h := x.Variable("HOME"); filepath.IsAbs(h) {
		if real, err := atomicfile.RealPath(h); err == nil {
			return real
		}
	}
	return ""
}

// hidden returns sluice's own folders, which a launch cannot see.
func (x *Cage) hidden() []string {
	var out []string
	for _, dir := range append([]string{x.State}, x.opt.Hidden...) {
		if real, err := atomicfile.RealPath(dir); err == nil && real != "/" {
			out = append(out, real)
		}
	}
	return out
}
