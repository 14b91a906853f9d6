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
	"sluice/internal/settings"
	"sluice/internal/tree"
)

// CageOptions are what a Cage works with. All are needed, but for Git, Sandbox and Self.
type CageOptions struct {
	Layout   layout.Layout
	Notes    *health.Notes
	Git      *git.Repo
	Settings func() settings.Settings
	Sandbox  func() (*sandbox.Box, error) // what launches are held by, or why there is none; nil: launches are not held
	Unheld   *Unheld                      // shared by all repos
	Environ  []string                     // the daemon's environment
	Hidden   []string                     // folders of sluice's own, beside the state folder, that a held launch cannot see
	Self     string                       // sluice's own binary
	Inboxes  Inboxes
	Vacate   func(pidFile string) // gives up the checkout of a judge whose launch is over
	Logf     func(string, ...any)
}

// Inboxes are where held launches say what they have to say.
type Inboxes interface {
	OpenOwn(key string)
	CloseOwn(key string)
}

// Cage is what launches of one repo are held by, what they may see, and what is theirs alone: a home, a git folder and an
// inbox for each.
type Cage struct {
	layout.Layout
	*health.Notes
	opt CageOptions

	mu       sync.Mutex
	liveRuns []string                // as of the last whole scan
	exposed  map[string]string       // runs of which some launch was not held -> why
	held     map[string]tree.Private // held launches -> the git folder of their own
	based    map[string]bool         // bases of runs that a ref keeps
	closed   bool

	ahead  ahead          // what launches to come need
	chores sync.WaitGroup // what is done behind what people and steps wait for
}

// NewCage makes the Cage of a repo. Close it.
func NewCage(o CageOptions) (*Cage, error) {
	x := &Cage{Layout: o.Layout, Notes: o.Notes, opt: o, exposed: map[string]string{}, held: map[string]tree.Private{}, based: map[string]bool{},
		ahead: ahead{dir: filepath.Join(o.Layout.State, layout.GitsDir, aheadFolder)}}
	if err := x.recallOpen(); err != nil {
		return nil, err
	}
	o.Unheld.join(x)
	return x, nil
}

// Close waits for what is left to be tidied.
func (x *Cage) Close() {
	x.opt.Unheld.leave(x)
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.Settle()
}

// Settle waits for what is done behind launches: folders that are removed, and made ahead.
func (x *Cage) Settle() { x.chores.Wait() }

// SetLive names the runs that live, as of the last whole scan.
func (x *Cage) SetLive(runs []string) {
	x.mu.Lock()
	x.liveRuns = runs
	x.mu.Unlock()
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

// hidden returns the folders of sluice's own that a launch cannot see.
func (x *Cage) hidden() []string {
	var out []string
	for _, dir := range append([]string{x.State}, x.opt.Hidden...) {
		if real, err := atomicfile.RealPath(dir); err == nil && real != "/" {
			out = append(out, real)
		}
	}
	return out
}
