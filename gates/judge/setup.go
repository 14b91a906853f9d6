package judge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/stub"
	"sluice/internal/text"
	"sluice/internal/tree"
)

const (
	setupDir   = "setup"        // holds the results of setups: <digest>-<base>/<n>, and the file doneName
	doneName   = "done"         // the work that had passed: Job.Passed
	setupsKept = 8              // results that stay, the newest
	setupStale = 24 * time.Hour // the others stay while used so recently
	setupsEach = 2              // but only so many with the same digest
)

// setUp returns the results of the setup for the judges of a job's step, and runs it if they are
// missing.
func (js *Judges) setUp(ctx context.Context, j job.Job, b tree.Begin) ([]launch.Made, error) {
	if j.Proc == nil || j.Proc.Step == "" || b.Base() == "" {
		return nil, nil
	}
	st := j.Spec.Step(j.Proc.Step)
	s := setupOf(j, st)
	if s == nil {
		return nil, nil
	}
	argv, err := js.launches.Command(j, &s.Run, j.Env, "", stub.Turn{}, "")
	if err != nil {
		return nil, err
	}
	digest, err := js.setupDigest(ctx, s, b, argv)
	if err != nil {
		return nil, err
	}
	select {
	case js.setting <- struct{}{}:
		defer func() { <-js.setting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	dir, done, err := js.setupFrom(ctx, j, digest, b.Base())
	if err != nil {
		return nil, err
	}
	var out []launch.Made
	for i, p := range s.Provides {
		out = append(out, launch.Made{Path: path.Clean(p), At: filepath.Join(dir, strconv.Itoa(i))})
	}
	if now := js.opt.Now(); done {
		return out, os.Chtimes(filepath.Join(dir, doneName), now, now)
	}
	if err := js.runSetup(ctx, j, st, b, argv, s, dir); err != nil {
		return nil, err
	}
	return out, js.dropSetups()
}

// setupFrom returns where the results of a setup are; done is false if they are to be made. A setup may
// run more than the files that it names. So results serve only where the base is built on theirs, and
// no work that had passed then has been undone: nothing of such work may be in them.
func (js *Judges) setupFrom(ctx context.Context, j job.Job, digest, base string) (dir string, done bool, err error) {
	of := filepath.Join(js.State, setupDir, digest+"-")
	entries, err := os.ReadDir(filepath.Dir(of))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	for _, x := range entries {
		from, ok := strings.CutPrefix(x.Name(), digest+"-")
		var passed []string
		if !ok || layout.Load(filepath.Join(of+from, doneName), &passed) != nil ||
			slices.ContainsFunc(passed, func(of string) bool { return !slices.Contains(j.Passed, of) }) {
			continue
		}
		there, err := js.opt.Git.HasCommit(ctx, from)
		if err == nil && there {
			there, err = js.opt.Git.Descends(ctx, base, from)
		}
		if err != nil || there {
			return of + from, there, err
		}
	}
	return of + base, false, nil
}

// setupOf returns the setup for the judges of a step; nil = none runs.
func setupOf(j job.Job, st *engine.Step) *engine.Setup {
	if len(j.RunInfo.Stubs) > 0 { // stand-ins have nothing to test
		return nil
	}
	return j.Spec.SetupOf(st)
}

// uncovered returns a *tree.Refused for work where the setup's results are shown: no judge would see
// it. A link there would even move them over other files.
func (js *Judges) uncovered(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin, commit string) error {
	s := setupOf(j, st)
	if s == nil || commit == "" || b.Base() == "" || b.Look != "" {
		return nil
	}
	rel, err := belowTop(b)
	if err != nil {
		return job.Unready("%v", err)
	}
	changes, err := js.opt.Git.ChangesBetween(ctx, b.Base(), commit)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if p := providedAt(s, rel, c.Path); p != "" {
			return &tree.Refused{Why: fmt.Sprintf("the work cannot be judged: it changes %q, but who judges sees there what "+
				"the setup made (provides: %s): put it back as it was before the step, or remove it if it is new",
				text.Clip(c.Path, tree.ShownPath), p)}
		}
	}
	return nil
}

// providedAt returns the path of a setup's result at, above or below a file; "" if there is none. rel
// is the step's folder; it and the file are from the top.
func providedAt(s *engine.Setup, rel, file string) string {
	for _, p := range s.Provides {
		at := path.Join(filepath.ToSlash(rel), p)
		if at == file || strings.HasPrefix(file, at+"/") || strings.HasPrefix(at, file+"/") {
			return path.Clean(p)
		}
	}
	return ""
}

// setupDigest names a setup's results by what they depend on. Those of another machine start may be
// incomplete.
func (js *Judges) setupDigest(ctx context.Context, s *engine.Setup, b tree.Begin, argv []string) (string, error) {
	rel, err := belowTop(b)
	if err != nil {
		return "", job.Unready("%v", err)
	}
	entries, err := js.opt.Git.Entries(ctx, b.Base())
	if err != nil {
		return "", err
	}
	parts := []string{js.launches.Boot.ID, b.Top, rel, fmt.Sprintf("%q %q", argv, s.Provides)}
	for _, f := range entries {
		below, inside := layout.Rel(rel, filepath.FromSlash(f.Path))
		named := inside && slices.ContainsFunc(s.Files, func(glob string) bool { return gates.Matches(glob, below) })
		if named || providedAt(s, rel, f.Path) != "" { // the latter is in the results
			parts = append(parts, f.Mode+" "+f.Object+" "+f.Path)
		}
	}
	return layout.HexSum([]byte(strings.Join(parts, "\x00")))[:32], nil
}

// runSetup runs the setup, and keeps its results in dir.
func (js *Judges) runSetup(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin, argv []string,
	s *engine.Setup, dir string) error {
	key := j.Key + layout.SetupMark + filepath.Base(dir)[:8]
	rel := js.LaunchDir(j.Run, st.ID, j.Attempt.N, 1) + "/" +
		layout.PathElement(strings.TrimPrefix(j.Key, j.Run+"/")) + "-setup"
	end, err := js.launches.Ensure(ctx, launch.Order{Key: key, Of: j.Key, Dir: rel}, func() (launch.Process, error) {
		seen, err := js.seated(ctx, b, b.Base(), key, nil)
		if err != nil {
			return launch.Process{}, err
		}
		w := js.launches.Whose(st.Role(), j.Turn)
		env, err := js.launches.Environ(j, w, key, st.Env, job.StepVars(j, st))
		return launch.Process{Cwd: seen.Host, Argv: argv, Env: env, Who: w, Judged: seen}, err
	})
	if err != nil {
		return err
	}
	defer js.Vacate(js.PIDFile(key))
	words := "setup `" + strings.Join(argv, " ") + "`"
	if why := end.Failure(); why != "" {
		return job.Unready("%s: %s", words, why)
	}
	if !end.Clean() || end.Exit.Signal != "" {
		return job.Unready("%s ended with exit code %d: see %s\n%s", words, end.Exit.Code, rel, end.Output())
	}
	top := js.Seats.Of(js.PIDFile(key))
	if top == "" {
		return job.Unready("%s: its checkout is gone: run the check again", words)
	}
	if err := keepMade(top, b, s, dir, j.Passed); err != nil {
		return job.Unready("%s: %v", words, err)
	}
	return nil
}

// keepMade moves a setup's results out of its checkout.
func keepMade(top string, b tree.Begin, s *engine.Setup, dir string, passed []string) error {
	rel, err := belowTop(b)
	if err != nil {
		return err
	}
	making := filepath.Join(filepath.Dir(dir), "making-"+rand.Text())
	if err := os.MkdirAll(making, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(making)
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	for i, p := range s.Provides {
		at := path.Join(filepath.ToSlash(rel), p)
		if err := plainPath(root, at); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("it has not made %s, which it is to provide", at)
		} else if err != nil {
			return fmt.Errorf("%w: it is not provided", err)
		}
		if err := os.Rename(filepath.Join(top, filepath.FromSlash(at)), filepath.Join(making, strconv.Itoa(i))); err != nil {
			return err
		}
	}
	if err := layout.Save(filepath.Join(making, doneName), passed); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // of a killed launch, or of work that was undone
		return err
	}
	return os.Rename(making, dir)
}

// plainPath returns why nothing can be kept or shown at a path: it is missing, or reached through a
// link.
func plainPath(root *os.Root, at string) error {
	parts := strings.Split(path.Clean(at), "/")
	for i := range parts {
		p := path.Join(parts[:i+1]...)
		info, err := root.Lstat(p)
		switch {
		case err != nil:
			return err
		case !info.IsDir() && (i+1 < len(parts) || !info.Mode().IsRegular()):
			return fmt.Errorf("%s is not a folder or a file", p)
		}
	}
	return nil
}

// dropSetups removes results that were not used for long, except the newest.
func (js *Judges) dropSetups() error {
	base := filepath.Join(js.State, setupDir)
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	type result struct {
		dir  string
		used time.Time
	}
	var all []result
	for _, x := range entries {
		r := result{dir: filepath.Join(base, x.Name())}
		if info, err := os.Lstat(filepath.Join(r.dir, doneName)); err == nil {
			r.used = info.ModTime()
		} // otherwise of a killed launch: it goes
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b result) int { return b.used.Compare(a.used) })
	each := map[string]int{}
	for i, r := range all {
		digest, _, _ := strings.Cut(filepath.Base(r.dir), "-")
		each[digest]++
		old := i >= setupsKept && js.opt.Now().Sub(r.used) > setupStale
		if old || each[digest] > setupsEach || r.used.IsZero() {
			if err := os.RemoveAll(r.dir); err != nil {
				js.Logf("setup: %v", err)
			}
		}
	}
	return nil
}
