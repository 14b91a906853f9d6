package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/show"
)

// Names below the root of a repo.
const (
	workflowDir = layout.WorkflowDir
	specsDir    = layout.SpecsDir
	signalsDir  = layout.SignalsDir
	runsDir     = layout.RunsDir
)

// place is where a repo and its state lie.
type place struct {
	root  string // real path of the repo's root
	id    string // repo-id
	state string // its state folder, outside the repo
	home  string // the folder of all state folders
	plain bool   // root is no git checkout: its trees are in a store in state
}

// startDir is the folder the command is about: the current one, or -C's.
func (a *app) startDir() (string, error) {
	dir := a.dir
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if !isDir(abs) {
		return "", fault.Misused("give an existing folder to -C", "%s: no such folder", clean(dir))
	}
	return abs, nil
}

// place finds the repo the command is about, with its `.workflow/`.
func (a *app) place(ctx context.Context) (*place, error) {
	p, err := a.bare(ctx)
	if err != nil {
		return nil, err
	}
	if !isDir(filepath.Join(p.root, workflowDir)) {
		return nil, fault.Failed("`sluice init` lays one out", "%s: no %s/ here", p.root, workflowDir)
	}
	return p, nil
}

// bare finds the repo the command is about, be there a `.workflow/` or not. In a linked worktree the root is the main one's.
func (a *app) bare(ctx context.Context) (*place, error) {
	dir, err := a.startDir()
	if err != nil {
		return nil, err
	}
	return placeOf(ctx, &a.Console, dir)
}

func placeOf(ctx context.Context, con *console.Console, dir string) (*place, error) {
	if root := heldRoot(con, dir); root != "" {
		home, err := stateHome(con)
		return &place{root: root, id: heldID, state: filepath.Join(home, heldID), home: home}, err
	}
	if p, err := plainPlace(ctx, con, dir); p != nil || err != nil {
		return p, err
	}
	repo, err := git.Open(ctx, dir)
	if errors.Is(err, git.ErrNoRepo) {
		return nil, &fault.Error{Cause: fmt.Sprintf("%s: no git repository here or above", dir), Advice: "go to your repo, or make one here: `git init`", Code: fault.ExitFailed, Err: err}
	}
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	root, err := mainRoot(ctx, repo)
	if err != nil {
		return nil, err
	}
	id, err := git.RepoID(repo.CommonDir())
	if err != nil {
		return nil, err
	}
	home, err := stateHome(con)
	if err != nil {
		return nil, err
	}
	return &place{root: root, id: id, state: filepath.Join(home, id), home: home}, nil
}

// storeFolder is the store, in the state, of a root that is no git checkout.
const storeFolder = "store.git"

// plainPlace finds the root at or above a folder that lies in no git checkout; nil where there is none. A root that has a store
// stays what it is when a .git appears in it, which an agent may have made; one that was a checkout is not taken for none.
func plainPlace(ctx context.Context, con *console.Console, dir string) (*place, error) {
	home, err := stateHome(con)
	if err != nil {
		return nil, err
	}
	root, err := git.Toplevel(dir)
	was := err == nil
	if !was {
		root = git.PlainTop(dir, workflowDir)
	}
	if root == "" {
		return nil, nil
	}
	p := &place{root: root, id: git.PlainID(root), home: home, plain: true}
	p.state = filepath.Join(home, p.id)
	switch {
	case isDir(filepath.Join(p.state, storeFolder)):
		return p, nil
	case was:
		return nil, nil
	case isDir(p.state):
		return nil, fault.Failed("put its .git back", "%s: no git repository there any more", clean(root))
	}
	repo, err := p.repo(ctx)
	if err != nil {
		return nil, err
	}
	return p, repo.Close()
}

// repo opens the git repository of the place, or the store of one without. Close it.
func (p *place) repo(ctx context.Context) (*git.Repo, error) { return p.repoWith(ctx, git.Options{}) }

func (p *place) repoWith(ctx context.Context, o git.Options) (*git.Repo, error) {
	if p.plain {
		return git.OpenStore(ctx, filepath.Join(p.state, storeFolder), p.root, o)
	}
	return git.OpenWith(ctx, p.root, o)
}

// source is where what is shown of the repo's work is read.
func (p *place) source() show.Source { return show.Source{Root: p.root, State: p.state, Repo: p.repo} }

// gatherShown puts together what there is about a gate or a step.
func gatherShown(ctx context.Context, p *place, v viewer, r daemon.RunStatus, id string) (*show.Shown, error) {
	spec, err := goesBy(ctx, v, r)
	if err != nil {
		return nil, err
	}
	return show.Gather(ctx, p.source(), spec, r, id), nil
}

// heldID stands for the id of a repo within a sandbox: the state that it names is not seen there.
const heldID = "held"

// heldRoot is the root of the repo for who stands in the checkout of a launch that is held by a sandbox; "" for everybody
// else. The git folder there is the launch's own: it knows no other worktree, and its agent may have damaged it.
func heldRoot(con *console.Console, dir string) string {
	root, top := con.Getenv("SLUICE_ROOT"), con.Getenv("SLUICE_CHECKOUT")
	if con.Getenv("SLUICE_SANDBOX") == "" || !filepath.IsAbs(root) || !filepath.IsAbs(top) {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == root || dir == top {
			break
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
	if dir == root || dir == top {
		return root
	}
	return ""
}

// mainRoot is where `.workflow/` lies: the repo's main checkout, also for who stands in a linked worktree (an agent there
// means the run that started it); the checkout we stand in where only that one has a `.workflow/`, or the main one is bare.
func mainRoot(ctx context.Context, repo *git.Repo) (string, error) {
	trees, err := repo.Worktrees(ctx)
	if err != nil {
		return "", fault.Failed("see what `git worktree list` says: an entry below .git/worktrees/ that is half written has to be removed", "%v", err)
	}
	if len(trees) == 0 || trees[0].Bare {
		return repo.Top(), nil
	}
	main, err := filepath.EvalSymlinks(trees[0].Path)
	if err != nil || (!isDir(filepath.Join(main, workflowDir)) && isDir(filepath.Join(repo.Top(), workflowDir))) {
		return repo.Top(), nil
	}
	return main, nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// stateHome is the folder of the state: $XDG_STATE_HOME/sluice.
func stateHome(con *console.Console) (string, error) {
	return xdg(con, "XDG_STATE_HOME", ".local/state")
}

// configFile is the person's own settings file: $XDG_CONFIG_HOME/sluice/config.yaml.
func configFile(con *console.Console) (string, error) {
	dir, err := xdg(con, "XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, "config.yaml"), err
}

// settingsOf reads all layers of settings for the repo at root ("" = none).
func settingsOf(con *console.Console, root string, set []string) (*settings.Layered, error) {
	own, err := configFile(con)
	if err != nil {
		return nil, err
	}
	return settings.Read(own, root, con.Env, set)
}

func xdg(con *console.Console, name, fallback string) (string, error) {
	if dir := con.Getenv(name); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sluice"), nil
	}
	home := con.Getenv("HOME")
	if home == "" {
		home = con.Getenv("USERPROFILE")
	}
	if home == "" {
		return "", fault.Failed("set HOME, or "+name+" to an absolute path", "no home folder: neither HOME nor %s is set", name)
	}
	return filepath.Join(home, filepath.FromSlash(fallback), "sluice"), nil
}

// makeState makes a folder of the state, for its owner alone.
func makeState(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &fault.Error{Cause: "the state folder: " + err.Error(), Advice: "make it writable, or set XDG_STATE_HOME to a folder that is: the journal lies there, outside the repo", Code: fault.ExitFailed, Err: err}
	}
	return nil
}

// writable sees to it, before anything is started, that there is a folder that files can be made in.
func writable(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".try-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return &fault.Error{Cause: "runs cannot be kept: " + err.Error(), Advice: "make " + dir + " yours (chown), or run sluice as its owner", Code: fault.ExitFailed, Err: err}
	}
	return err
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
