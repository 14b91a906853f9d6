package launch

import (
	"slices"
	"sync"

	"sluice/agents/sandbox"
	"sluice/internal/settings"
)

// Unheld are the launches of all repos of a daemon that no sandbox holds: each could answer any
// repo's gates. The zero value is ready.
type Unheld struct {
	mu    sync.Mutex
	live  map[string]string // pid file -> why it is not held
	repos []*Cage
}

// join has a repo's runs exposed by unheld launches.
func (u *Unheld) join(c *Cage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.repos = append(u.repos, c)
}

// leave undoes join. The repo's own unheld launches still count.
func (u *Unheld) leave(c *Cage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.repos = slices.DeleteFunc(u.repos, func(of *Cage) bool { return of == c })
}

// add records a launch and exposes every live run.
func (u *Unheld) add(pidFile, why string) {
	u.mu.Lock()
	if u.live == nil {
		u.live = map[string]string{}
	}
	u.live[pidFile] = why
	u.mu.Unlock()
	u.tell(why)
}

// end records the end of a launch. It exposes runs started meanwhile too: what the launch left may
// be read later.
func (u *Unheld) end(pidFile string) {
	u.mu.Lock()
	why, ok := u.live[pidFile]
	u.mu.Unlock()
	if !ok {
		return
	}
	u.tell(why)
	u.mu.Lock()
	delete(u.live, pidFile)
	u.mu.Unlock()
}

func (u *Unheld) tell(why string) {
	u.mu.Lock()
	repos := slices.Clone(u.repos)
	u.mu.Unlock()
	for _, c := range repos {
		c.exposeLive("beside it an agent worked that no sandbox held: " + why)
	}
}

// rootsBelow returns the roots of the repos below dir, except c's.
func (u *Unheld) rootsBelow(dir string, c *Cage) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []string
	for _, other := range u.repos {
		if other.Root != c.Root && other.Root != dir && sandbox.Inside(dir, other.Root) {
			out = append(out, other.Root)
		}
	}
	slices.Sort(out)
	return out
}

// any returns why one of them is not held.
func (u *Unheld) any() (why string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, why := range u.live {
		return why, true
	}
	return "", false
}

func (x *Cage) exposeLive(why string) {
	if x.opt.Sandbox == nil || x.opt.Settings().Sandbox.Mode == settings.SandboxOff {
		return // all of its own are exposed
	}
	x.mu.Lock()
	var runs []string
	for _, run := range x.liveRuns {
		if _, known := x.exposed[run]; !known {
			runs = append(runs, run)
		}
	}
	x.mu.Unlock()
	for _, run := range runs {
		if err := x.Expose(run, "", why); err != nil {
			x.Logf("%s: that it is exposed could not be written down: %v", run, err)
		}
	}
}
