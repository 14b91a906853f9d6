package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sluice/agents/program"
	"sluice/agents/sandbox"
	"sluice/internal/job"
	"sluice/internal/layout"
)

// ends releases the resources of a launch, or its note as unheld. Its inbox is read once more.
func (x *Cage) ends(key string) {
	pid := x.PIDFile(key)
	x.opt.Unheld.end(pid)
	_ = os.Remove(pid + layout.OpenMark) // a mark that stays exposes too much, never too little
	x.dropGit(key, true)
	if !strings.Contains(key, layout.SetupMark) { // what a setup made is taken from its checkout first
		x.opt.Vacate(pid)
	}
	x.mu.Lock()
	delete(x.held, key)
	x.mu.Unlock()
	x.opt.Inboxes.CloseOwn(key)
}

// keepPrivate records a launch's own inbox and where it works.
func (x *Cage) keepPrivate(key string) {
	if !layout.IsDir(x.PIDFile(key) + layout.InboxMark) {
		return
	}
	x.opt.Inboxes.OpenOwn(key)
	if g, ok := x.OwnGitOf(key); ok {
		x.workedIn(key, g)
	}
}

// reached returns another launch's checkout that contains this worktree; "" = none. A launch older
// than the worktree may write around it.
func (x *Cage) reached(c sandbox.Checkout) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, g := range x.held {
		if g.Top != c.Top && sandbox.Inside(g.Top, c.Top) {
			return g.Top
		}
	}
	return ""
}

// seed copies a program's current login and settings into a launch's private home. A copy keeps the
// agent from changing what the person's own program starts with.
func seed(plan sandbox.Plan, format string, variable func(string) string) error {
	for _, s := range program.Seeds(format, variable, plan.Home) {
		data, err := readSeed(s.From)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return job.Unready("%s: %v", s.From, err)
		}
		if err := replace(plan.Private, s.To, data); err != nil {
			return err
		}
	}
	return nil
}

const maxSeed = 4 << 20

func readSeed(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSeed {
		return nil, fmt.Errorf("it is not a regular file of at most %d MiB", maxSeed>>20)
	}
	return os.ReadFile(file)
}

// replace writes a file below a folder in which an earlier launch may have left links.
func replace(base, rel string, data []byte) error {
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := path.Dir(rel); dir != "." {
		if info, err := root.Lstat(dir); err == nil && !info.IsDir() {
			if err := root.Remove(dir); err != nil {
				return err
			}
		}
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := root.RemoveAll(rel); err != nil {
		return err
	}
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// homeOf returns the private home of a launch whose home has this owner.
func homeOf(l layout.Layout, key, owner string) string {
	run, _, _ := strings.Cut(key, "/")
	return filepath.Join(l.State, layout.HomesDir, layout.PathElement(run), layout.PathElement(owner))
}

// Holder names the owner of a launch's private home: its step, its gate or its session. No other
// launch writes there, so settings with hooks that one leaves affect no other. A judge without a
// session has an unused home.
func Holder(l layout.Layout, key string, judges bool) string {
	if p, ok := programOf(l, key); ok && p.Session != "" {
		return sessionName(p.Session, p.Agent)
	}
	if judges {
		return judgeHome(key)
	}
	_, rest, _ := strings.Cut(key, "/")
	who, _, _ := strings.Cut(rest, "#")
	return who
}

// judgeHome names the private home of a judge's launch and its corrections: nobody wrote there
// before.
func judgeHome(key string) string {
	_, rest, _ := strings.Cut(layout.LaunchOf(key), "/")
	return "judge." + rest
}

// leaveHome removes the private home of a judge's ended launch. What cannot be removed goes with
// the run's.
func (x *Cage) leaveHome(key string) {
	if home := homeOf(x.Layout, key, judgeHome(key)); layout.IsDir(home) {
		_ = os.RemoveAll(home)
	}
}
