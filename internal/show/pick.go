package show

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/agents"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// NewestOutput returns the folder of the launch that wrote last; one that is at work comes before all others. runs are
// folders below .workflow/runs/; id names a step or a gate, "" any; working are folders of attempts and reviews, below
// .workflow/runs/ too.
func NewestOutput(root string, runs []string, id string, working map[string]bool) (string, error) {
	pattern := "*"
	if id != "" {
		if !ids.Valid(id) {
			return "", fault.Misused("`sluice status` names the steps", "%q is not the id of a step or gate", text.Line(id))
		}
		pattern = id + ".*"
	}
	best, at, works := "", time.Time{}, false
	for _, run := range runs {
		for _, glob := range []string{pattern, filepath.Join(pattern, againPrefix+"*")} {
			folder := filepath.Join(root, filepath.FromSlash(layout.RunsDir), filepath.FromSlash(run))
			found, err := atomicfile.Glob(folder, glob)
			if err != nil {
				return "", err
			}
			for _, d := range found {
				rel, err := filepath.Rel(folder, d)
				if err != nil {
					return "", err
				}
				attempt, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
				last := wrote(d)
				if last.IsZero() || id == "" && strings.HasPrefix(attempt, "after_run.") {
					continue // no launch, or the run's hook: nobody's words
				}
				now := working[run+"/"+attempt] && !layout.Ended(d)
				if best == "" || now && !works || now == works && last.After(at) {
					best, at, works = d, last, now
				}
			}
		}
	}
	if best == "" {
		return "", fault.Failed("`sluice status` shows what runs", "no output yet of %s",
			strings.TrimSpace(text.Line(runs[0]+" "+id)))
	}
	return best, nil
}

// wrote returns when the launch of a folder last wrote, or began if it is silent; zero for a folder of
// anything else.
func wrote(dir string) time.Time {
	if at := agents.LastOutput(dir); !at.IsZero() {
		return at
	}
	st, err := os.Stat(dir)
	entries, errRead := os.ReadDir(dir)
	if err != nil || errRead != nil {
		return time.Time{}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == name })
	}
	switch {
	case len(entries) == 0 && filepath.Base(dir) != layout.FilesDir: // a command's
	case has(layout.OwnDir), has(layout.ExitName):
	case has(layout.PromptName) && !has(layout.OfferName):
	default:
		return time.Time{}
	}
	return st.ModTime()
}

// againPrefix begins the name of the folder of a launch that is not its attempt's first.
const againPrefix = "launch-"

// atWork returns the folders, below .workflow/runs/, of what works in these runs: attempts whose
// agent was launched, and reviews whose reviewer was. What waits for anything is not among them.
func atWork(runs []daemon.RunStatus) map[string]bool {
	out := map[string]bool{}
	for _, r := range runs {
		if !r.Live() {
			continue
		}
		folder := cmp.Or(r.Dir, r.ID)
		for _, s := range r.Steps {
			if s.State == engine.Running || s.State == engine.Signalled {
				out[fmt.Sprintf("%s/%s.%d", folder, s.ID, s.Attempt)] = true
			}
			for _, g := range s.Gates {
				if g.State == engine.OnReview && !g.Due {
					out[fmt.Sprintf("%s/%s.%d", folder, g.ID, g.Round)] = true
				}
			}
		}
	}
	return out
}

// family returns a run and, with all, the runs below it.
func family(runs []daemon.RunStatus, id string, all bool) []daemon.RunStatus {
	out := slices.DeleteFunc(slices.Clone(runs), func(r daemon.RunStatus) bool { return r.ID != id })
	if !all {
		return out
	}
	for r := range daemon.Below(daemon.Each(runs), id) {
		out = append(out, *r)
	}
	return out
}

func foldersOf(runs []daemon.RunStatus) (out []string) {
	for _, r := range runs {
		out = append(out, cmp.Or(r.Dir, r.ID))
	}
	return out
}

// runToTail returns the run that is meant: the named one, else the newest in which something works,
// else the newest that has begun, else the newest.
func runToTail(runs []daemon.RunStatus, name string) (string, error) {
	if name != "" {
		return workspace.PickRun(runs, name)
	}
	begun := ""
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		switch {
		case r.Child != nil:
		case len(atWork(family(runs, r.ID, true))) > 0:
			return r.ID, nil
		case begun == "" && !r.Started.IsZero():
			begun = r.ID
		}
	}
	if begun != "" {
		return begun, nil
	}
	return workspace.PickRun(runs, workspace.LastRun)
}
