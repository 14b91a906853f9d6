package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// place is where a launch works; it is recorded once the worktree is complete.
type place struct {
	Dir    string      `json:"dir"`
	Before tree.Before `json:"before"`
}

func (w *Worker) placeFile(key string) string { return w.PIDFile(key) + ".place" }

// dir is the worktree of a launch.
func (w *Worker) dir(key string) string {
	return filepath.Join(w.Root, filepath.FromSlash(engine.WorkspaceDir), "worker."+layout.PathElement(key))
}

func branchOf(key string) string {
	return "sluice-worker/" + strings.ReplaceAll(layout.PathElement(key), "#", ".")
}

func refOf(key string) string { return git.Own("worker", strings.ReplaceAll(key, "#", ".")) }

// prepare makes what a launch needs, and returns its process.
func (w *Worker) prepare(ctx context.Context, s launch.Sent) (launch.Process, error) {
	if len(s.Argv) > 0 && !w.opt.Commands {
		return launch.Process{}, job.Fatal("this worker takes no commands: it lacks the label %s", launch.Commands)
	}
	at, err := w.begin(ctx, s)
	if err != nil {
		return launch.Process{}, err
	}
	if err := w.MakeBelow(s.Dir, 0o700); err != nil {
		return launch.Process{}, err
	}
	vars := map[string]string{"SLUICE_STEP": s.Step, "SLUICE_ATTEMPT": strconv.Itoa(s.N)}
	if s.Task != "" {
		vars["SLUICE_TASK"], vars["SLUICE_TASK_TRY"] = s.Task, strconv.Itoa(s.Try)
	}
	if s.Signal != "" {
		inbox, err := inboxIn(at.Dir, s.Run)
		if err != nil {
			return launch.Process{}, job.Fatal("the worktree: %v", err)
		}
		if err := atomicfile.MkdirBelow(at.Dir, inbox, 0o755); err != nil {
			return launch.Process{}, err
		}
		vars["SLUICE_SIGNAL"] = filepath.Join(inbox, s.Signal)
	}
	var env []engine.EnvVar
	for name, value := range s.Env {
		env = append(env, engine.EnvVar{Name: name, Value: engine.Text{Source: value}})
	}
	p, err := w.opt.Launches.Agent(launch.Ask{Turn: launch.Turn{Key: s.Key, Dir: s.Dir},
		Job: job.Job{Effect: engine.Effect{Run: s.Run, Key: s.Key}, Vars: s.Vars,
			Config:  engine.Config{Attempt: engine.Usage{CostUSD: s.CostUSD}},
			RunInfo: job.RunInfo{ID: s.Run, Workflow: s.Workflow}},
		Who: w.opt.Launches.Whose(cmp.Or(s.Role, s.EnvOf), s.Turn), Cwd: at.Dir, Argv: s.Argv, Prompt: s.Prompt,
		Session: engine.Text{Source: s.Session}, Schema: s.Schema, Env: env, Vars: vars, Resume: s.Resume, Base: s.Base})
	if s.Works {
		p.Work = &tree.Order{Run: s.Run, Step: s.Step, N: s.N, Base: s.Head}
	}
	return p, err
}

// inboxIn returns the inbox of a run in a worktree. A commit, or an agent, can have put a link there.
func inboxIn(dir, run string) (string, error) {
	at, err := layout.Under(dir, layout.SignalsDir+"/"+run+"/x")
	return filepath.Dir(at), err
}

// begin makes the worktree of a launch as its order says. One that a kill has left half made is made
// anew.
func (w *Worker) begin(ctx context.Context, s launch.Sent) (at place, err error) {
	if layout.Load(w.placeFile(s.Key), &at) == nil {
		return at, nil
	}
	if err := w.bring(ctx, s); err != nil {
		return at, err
	}
	at.Dir = w.dir(s.Key)
	if err := w.remove(ctx, s.Key); err != nil {
		return at, err
	}
	if err := w.MakeBelow(engine.WorkspaceDir, 0o755); err != nil {
		return at, err
	}
	if err := atomicfile.Write(filepath.Join(filepath.Dir(at.Dir), ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return at, err
	}
	branch := branchOf(s.Key)
	if err := w.opt.Git.MoveRef(ctx, w.opt.Git.Top(), git.BranchRefs+branch, "", s.Head,
		"sluice: a launch begins"); err != nil {
		return at, err
	}
	if _, err := w.opt.Git.AddWorktree(ctx, at.Dir, branch); err != nil {
		return at, err
	}
	changes, err := w.opt.Git.ChangesBetween(ctx, s.Head, s.Start)
	if err == nil && len(changes) > 0 {
		err = w.opt.Git.WriteFiles(ctx, at.Dir, changes)
	}
	if err != nil {
		return at, err
	}
	o := tree.Order{Run: s.Run, Step: s.Step, N: s.N, Base: s.Head}
	if at.Before, err = w.folder(at.Dir).Find(ctx, o); err != nil {
		return at, err
	}
	err = os.Remove(w.AttemptFile(s.Run, s.Step, s.N, layout.ReceivedFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return at, err // of an earlier launch
	}
	return at, layout.Save(w.placeFile(s.Key), at)
}

// bring has the commits of an order here, and keeps them.
func (w *Worker) bring(ctx context.Context, s launch.Sent) error {
	has, err := w.opt.Git.HasCommit(ctx, s.Start)
	if err != nil {
		return err
	}
	if has {
		return w.opt.Git.Keep(ctx, refOf(s.Key), s.Start)
	}
	if s.Pack == "" {
		return job.Unready("the worker's clone has no commit %.12s any more", s.Start)
	}
	in, err := w.opt.Packs.Get(ctx, s.Pack)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := tree.Bring(ctx, w.opt.Git, in, refOf(s.Key), s.Start, s.Bases...); err != nil {
		return fmt.Errorf("the commits of the order: %w", err)
	}
	return nil
}

// remove removes the worktree and the branch of a launch, also those left half made.
func (w *Worker) remove(ctx context.Context, key string) error {
	if dir := w.dir(key); layout.IsDir(dir) {
		if err := w.opt.Git.CloseWorktree(ctx, dir); err != nil {
			return err
		}
	}
	return w.drop(ctx, git.BranchRefs+branchOf(key))
}

// drop removes a ref, if there is one.
func (w *Worker) drop(ctx context.Context, ref string) error {
	tip, err := w.opt.Git.TipOf(ctx, ref)
	if err != nil || tip.SHA == "" {
		return err
	}
	return w.opt.Git.MoveRef(ctx, w.opt.Git.Top(), ref, tip.SHA, "", "sluice: a launch is over")
}
