package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/daemon"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/text"
)

// Workspace is a repo and its state.
type Workspace struct {
	Root  string // real path of the repo's root
	ID    string // repo-id
	State string // its state folder, outside the repo
	Home  string // the folder of all state folders
	Plain bool   // Root is no git checkout: its trees are in a store in State
}

// Locked runs do while no other process serves the repo.
func (p *Workspace) Locked(do func() error) error {
	lock, err := daemon.TakeLock(p.State)
	if _, ok := errors.AsType[*daemon.Held](err); ok {
		return &fault.Error{Cause: err.Error(), Advice: "stop the process that serves the repo first",
			Code: fault.ExitServed, Err: err}
	}
	if err != nil {
		return err
	}
	return errors.Join(do(), lock.Release())
}

// StartDir returns the folder of a command: the current one, or -C's.
func StartDir(dir string) (string, error) {
	dir = cmp.Or(dir, ".")
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if !IsDir(abs) {
		return "", fault.Misused("name an existing folder", "%s: no such folder", text.Line(dir))
	}
	return abs, nil
}

// Find finds the repo of a folder, "" being the current one. It must have a `.workflow/`.
func Find(ctx context.Context, con *console.Console, dir string) (*Workspace, error) {
	p, err := Bare(ctx, con, dir)
	if err != nil {
		return nil, err
	}
	if !IsDir(filepath.Join(p.Root, layout.WorkflowDir)) {
		return nil, fault.Failed("`sluice init` creates it", "%s: no %s/ here", p.Root, layout.WorkflowDir)
	}
	return p, nil
}

// Bare finds the repo of a folder, with or without `.workflow/`. In a linked worktree the root is
// the main one's.
func Bare(ctx context.Context, con *console.Console, dir string) (*Workspace, error) {
	dir, err := StartDir(dir)
	if err != nil {
		return nil, err
	}
	p, err := At(ctx, con, dir)
	if err == nil && !utf8.ValidString(p.Root) { // JSON would change it
		return nil, fault.Failed("rename the folder", "%s: its path is not UTF-8, and no record can name it",
			text.Line(p.Root))
	}
	return p, err
}

// At finds the repo of an absolute folder.
func At(ctx context.Context, con *console.Console, dir string) (*Workspace, error) {
	home, err := Home(con)
	if err != nil {
		return nil, err
	}
	if root := heldRoot(con, dir); root != "" {
		return &Workspace{Root: root, ID: heldID, State: filepath.Join(home, heldID), Home: home}, nil
	}
	top, err := git.Toplevel(dir)
	if p, err := plainPlace(ctx, home, dir, top); p != nil || err != nil {
		return p, err
	}
	if errors.Is(err, git.ErrNoRepo) {
		return nil, &fault.Error{Cause: fmt.Sprintf("%s: no git repository here or above", dir),
			Advice: "go to your repo, or create one here: `git init`", Code: fault.ExitFailed, Err: err}
	}
	if err != nil {
		return nil, err
	}
	common, err := git.CommonDir(top)
	if err != nil {
		return nil, err
	}
	id := git.RepoID(common)
	p := &Workspace{Root: top, ID: id, State: filepath.Join(home, id), Home: home}
	if common != filepath.Join(top, ".git") { // a linked worktree, or a git folder elsewhere
		p.Root, err = mainRoot(ctx, top, common, p.State)
	}
	return p, err
}

// StoreFolder is the store, in the state, of a root that is no git checkout.
const StoreFolder = "store.git"

// plainPlace finds the root at or above a folder outside any git checkout; nil = none. A root with
// a store stays one when a .git appears in it, which an agent may have created: then root is the
// checkout's top level. A former checkout is an error.
func plainPlace(ctx context.Context, home, dir, root string) (*Workspace, error) {
	was := root != ""
	if !was {
		root = git.PlainTop(dir, layout.WorkflowDir)
	}
	if root == "" {
		return nil, nil
	}
	p := &Workspace{Root: root, ID: git.PlainID(root), Home: home, Plain: true}
	p.State = filepath.Join(home, p.ID)
	switch {
	case IsDir(filepath.Join(p.State, StoreFolder)):
		return p, nil
	case was:
		return nil, nil
	case IsDir(p.State):
		return nil, fault.Failed("put its .git back", "%s: no git repository there any more", text.Line(root))
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	return p, repo.Close()
}

// Open opens the git repository of the place, or its store. The caller closes it.
func (p *Workspace) Open(ctx context.Context) (*git.Repo, error) {
	return p.OpenWith(ctx, git.Options{})
}

func (p *Workspace) OpenWith(ctx context.Context, o git.Options) (*git.Repo, error) {
	if p.Plain {
		return git.OpenStore(ctx, filepath.Join(p.State, StoreFolder), p.Root, o)
	}
	return git.OpenWith(ctx, p.Root, o)
}

// heldID is the id of a repo inside a sandbox, where its state is not visible.
const heldID = "held"

// heldRoot returns the repo's root for a process in the checkout of a held launch; "" for any
// other. The git folder there is the launch's own: it knows no other worktree, and the agent may
// have damaged it.
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

// mainRoot returns the folder of `.workflow/`: the repo's main checkout, also from a linked
// worktree (an agent there means the run that started it). If that has none, or git does not tell
// where it is (a bare repo, a git folder elsewhere), it is the checkout that the state is of, so that
// a repo has one root however many checkouts it has. Without either it is the current one.
func mainRoot(ctx context.Context, top, common, state string) (string, error) {
	repo, err := git.Open(ctx, top)
	if err != nil {
		return "", err
	}
	defer repo.Close()
	trees, err := repo.Worktrees(ctx)
	if err != nil {
		return "", fault.Failed("run `git worktree list`, and remove an incomplete entry below .git/worktrees/", "%v", err)
	}
	first, _ := os.ReadFile(filepath.Join(state, rootFile)) // "" = there is no state
	could := []string{string(first), repo.Top()}
	if len(trees) > 0 && !trees[0].Bare {
		could = slices.Insert(could, 0, trees[0].Path)
	}
	root := ""
	for _, dir := range could {
		real, err := filepath.EvalSymlinks(dir)
		if at, cerr := git.CommonDir(real); dir == "" || errors.Join(err, cerr) != nil || at != common {
			continue
		}
		if IsDir(filepath.Join(real, layout.WorkflowDir)) {
			return real, nil
		}
		root = cmp.Or(root, real)
	}
	return cmp.Or(root, top), nil
}

// IsDir reports whether the path is a folder, or a link to one.
func IsDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// Home returns the folder of the state: $XDG_STATE_HOME/sluice.
func Home(con *console.Console) (string, error) {
	return xdg(con, "XDG_STATE_HOME", ".local/state")
}

// ConfigFile returns the person's own settings file: $XDG_CONFIG_HOME/sluice/config.yaml.
func ConfigFile(con *console.Console) (string, error) {
	dir, err := xdg(con, "XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, "config.yaml"), err
}

// Settings reads all layers of settings for the repo at root ("" = none).
func Settings(con *console.Console, root string, set []string) (*settings.Layered, error) {
	own, err := ConfigFile(con)
	if err != nil {
		return nil, err
	}
	s, err := settings.Read(own, root, con.Env, set)
	if err != nil {
		return s, err
	}
	if home, err := Home(con); err == nil {
		s.Web.Label, _ = pageLabel(home) // the daemon replaces what is no label
	}
	return s, nil
}

// labelFile has the label of the page's local name, in the folder of all state folders.
const labelFile = "web-label"

// pageLabel returns the label of the page's local name; "" if there is none.
func pageLabel(home string) (string, error) {
	raw, _, err := atomicfile.OpenRegular(home, labelFile, 64)
	if err == nil && !regexp.MustCompile(`^[a-z2-7]{8}$`).Match(raw) {
		err = errors.New("it is no label")
	}
	if err != nil {
		return "", err
	}
	return string(raw), nil
}

// PageLabel returns the label of the page's local name, and makes one if there is none that can be read.
func PageLabel(home string) (string, error) {
	if label, err := pageLabel(home); err == nil {
		return label, nil
	}
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	label := strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
	return label, atomicfile.Write(filepath.Join(home, labelFile), []byte(label), 0o600)
}

func xdg(con *console.Console, name, fallback string) (string, error) {
	if dir := con.Getenv(name); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sluice"), nil
	}
	home := cmp.Or(con.Getenv("HOME"), con.Getenv("USERPROFILE"))
	if home == "" {
		return "", fault.Failed("set HOME, or "+name+" to an absolute path", "no home folder: neither HOME nor %s is set",
			name)
	}
	return filepath.Join(home, filepath.FromSlash(fallback), "sluice"), nil
}

// MakeState creates a folder of the state, for its owner alone.
func MakeState(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &fault.Error{Cause: "the state folder: " + err.Error(),
			Advice: "make it writable, or set XDG_STATE_HOME to a writable folder: the journal is there, outside the repo",
			Code:   fault.ExitFailed, Err: err}
	}
	return nil
}

// Writable creates a folder if missing, and checks that files can be created in it.
func Writable(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".try-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return &fault.Error{Cause: "runs cannot be kept: " + err.Error(),
			Advice: "make " + dir + " yours (chown), or run sluice as its owner", Code: fault.ExitFailed, Err: err}
	}
	return err
}
