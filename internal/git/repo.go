package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
)

// ErrNoRepo says that a folder lies in no git repository with a worktree.
var ErrNoRepo = errors.New("no git repository")

// ErrNotWorktree says that a folder is no checkout of this repo.
var ErrNotWorktree = errors.New("not a worktree of this repo")

// maxPointerBytes bounds the small files in which git keeps a path.
const maxPointerBytes = 8 << 10

// Repo is one git repository. It is safe for concurrent use.
type Repo struct {
	tool
	top     string // top level of the checkout it was opened in
	common  string // the folder that all worktrees share
	format  string // sha1 or sha256
	staging string // of Options
	plain   bool   // top is no checkout, and common a store of ours
	opened  time.Time
	scratch string // where the shadow is; "" until it is needed first, where it is ours. Read it after keepShadow

	trees   sync.RWMutex // git reads what another git is just writing of a new worktree, and fails
	mu      sync.Mutex
	private bool                 // the scratch folder is ours to remove
	locks   map[string]*treeLock // by worktree: who uses its private index, or waits to

	// What was read last, and of which state of its files.
	configs map[string]configKept // by git folder
	links   map[string]linksKept  // by index
	commits map[string]commitKept // by name

	lastLaid laid            // what MakeFolder made last, for the next spare; none where one is made of it
	spares   map[string]laid // by folder
}

// Options are how a repo is opened; the zero value is good.
type Options struct {
	// Scratch is a folder of the caller's, kept from call to call, for this repo alone: private indexes
	// in it save reading every file again. "" = a folder of ours, made when it is needed and removed by Close.
	Scratch string
	// Staging is a folder below the checkout that is opened, on its file system, in which no agent can write: worktrees
	// are made there and moved to their place when they are whole. "" = they are made in their place.
	Staging string
}

// Open opens the repo that dir lies in. Close it.
func Open(ctx context.Context, dir string) (*Repo, error) { return OpenWith(ctx, dir, Options{}) }

// OpenWith opens the repo that dir lies in, as o says. Errors are ErrNoGit, ErrNoRepo, or of the system.
func OpenWith(ctx context.Context, dir string, o Options) (*Repo, error) {
	t, err := findTool()
	if err != nil {
		return nil, err
	}
	top, err := Toplevel(dir)
	if err != nil {
		return nil, err
	}
	out, err := t.run(ctx, call{
		args:    []string{"rev-parse", "--path-format=absolute", "--show-object-format", "--git-common-dir"},
		env:     []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(top)},
		dir:     top,
		safeDir: top,
		limit:   smallOutput, timeout: callTime,
	})
	if err != nil {
		return nil, fmt.Errorf("open the repo at %s: %w", top, err)
	}
	format, common, ok := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n")
	if !ok || (format != "sha1" && format != "sha256") {
		return nil, fault.New("install git 2.36 or newer", "open the repo at %s: this git does not know what is asked", top)
	}
	if common, err = filepath.EvalSymlinks(common); err != nil {
		return nil, fmt.Errorf("open the repo at %s: %w", top, err)
	}
	return (&Repo{tool: t, top: top, common: common, format: format}).open(ctx, o)
}

// open has a repo ready for its first call.
func (r *Repo) open(ctx context.Context, o Options) (*Repo, error) {
	r.opened, r.scratch, r.staging, r.locks = time.Now(), o.Scratch, o.Staging, map[string]*treeLock{}
	r.configs, r.links, r.spares, r.commits = map[string]configKept{}, map[string]linksKept{}, map[string]laid{}, map[string]commitKept{}
	if r.scratch == "" {
		return r, nil // most who open a repo for a moment never need it
	}
	var err error
	if r.gits, err = lockScratch(ctx, r.scratch); err != nil {
		return nil, fmt.Errorf("open the repo at %s: %w", r.top, err)
	}
	if err := r.makeShadow(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the repo at %s: %w", r.top, err), r.Close())
	}
	return r, nil
}

// Close removes what the repo kept outside itself.
func (r *Repo) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.gits != nil {
		err = r.gits.Close()
	}
	if !r.private {
		return err
	}
	return os.RemoveAll(r.scratch)
}

// Top is the real path of the top level of the checkout that the repo was opened in.
func (r *Repo) Top() string { return r.top }

// CommonDir is the real path of the git folder that all worktrees of the repo share.
func (r *Repo) CommonDir() string { return r.common }

// GitDir returns the real path of the git folder of one of the repo's checkouts: the common one for the main checkout, one
// below its worktrees/ for a linked one. The error is ErrNotWorktree where the folder is neither.
func (r *Repo) GitDir(top string) (string, error) {
	dir, _, err := r.gitDirOf(top)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// Linked returns the real paths of the repo's linked worktrees that are there, by what its git folder says. No git is run.
func (r *Repo) Linked() ([]string, error) {
	var out []string
	err := r.eachLinked(func(_, tree string) (found bool) {
		if real, err := filepath.EvalSymlinks(tree); err == nil {
			out = append(out, real)
		}
		return false
	})
	return out, err
}

// eachLinked goes through the entries that git keeps of linked worktrees, until one is found: admin is the entry's folder,
// tree where it says that the worktree is. An entry that cannot be read is passed over: it is half of one, or nobody's.
func (r *Repo) eachLinked(is func(admin, tree string) (found bool)) error {
	dir := filepath.Join(r.common, "worktrees")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		admin := filepath.Join(dir, e.Name())
		if dot, err := pointer(admin, "gitdir", ""); err == nil && is(admin, filepath.Dir(dot)) {
			return nil
		}
	}
	return nil
}

// Toplevel returns the real path of the top level of the checkout that path, which must exist, lies in.
// It is the key of that checkout: two paths of one checkout have the same.
func Toplevel(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := atomicfile.RealPath(abs)
	if err != nil {
		return "", fmt.Errorf("%w at %s: %w", ErrNoRepo, path, err)
	}
	for dir := real; ; dir = filepath.Dir(dir) {
		if isCheckout(dir) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fault.New("run git init", "%w at %s: neither it nor a folder above it has one", ErrNoRepo, path)
		}
	}
}

// isCheckout reports whether git would take dir for the top level of a checkout: an empty folder named
// .git does not make it one.
func isCheckout(dir string) bool {
	dot := filepath.Join(dir, ".git")
	info, err := os.Stat(dot)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		target, err := pointer(dir, ".git", "gitdir: ")
		if err != nil {
			return false
		}
		dot = target
	}
	_, err = os.Lstat(filepath.Join(dot, "HEAD"))
	return err == nil
}

// pointer reads the path that a file of git's names, after a prefix; a relative one is meant from dir.
func pointer(dir, name, prefix string) (string, error) {
	data, _, err := atomicfile.OpenRegular(dir, name, maxPointerBytes)
	if err != nil {
		return "", err
	}
	line, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !ok || line == "" {
		return "", fmt.Errorf("%s: names no folder", filepath.Join(dir, name))
	}
	if !filepath.IsAbs(line) {
		line = filepath.Join(dir, line)
	}
	return filepath.Clean(line), nil
}

// gitDirOf finds the git folder of the worktree at path by what the common folder says of it: the .git
// file in the worktree belongs to whoever works there.
func (r *Repo) gitDirOf(path string) (gitDir, top string, err error) {
	if top, err = atomicfile.RealPath(path); err != nil {
		return "", "", err
	}
	if top, err = filepath.Abs(top); err != nil {
		return "", "", err
	}
	if filepath.Join(top, ".git") == r.common {
		return r.common, top, nil
	}
	err = r.eachLinked(func(admin, tree string) (found bool) {
		if real, err := filepath.EvalSymlinks(tree); err == nil && real == top {
			gitDir = admin
		}
		return gitDir != ""
	})
	switch {
	case err != nil:
		return "", "", err
	case gitDir != "":
		return gitDir, top, nil
	case top == r.top:
		// A main checkout whose git folder lies elsewhere: git init --separate-git-dir, a submodule.
		return r.common, top, nil
	}
	return "", "", fault.New("open the repo it belongs to", "%w: %s", ErrNotWorktree, path)
}

// inRepo runs a call that needs the repo itself. With all folders named, git looks for none, and a .git
// file in the worktree does not count. A commondir file would, for refs, whatever is named: one that leads
// elsewhere was planted.
func (r *Repo) inRepo(ctx context.Context, gitDir, top string, c call) ([]byte, error) {
	if err := r.intoRepo(gitDir, top, &c); err != nil {
		return nil, err
	}
	return r.run(ctx, c)
}

// streamIn is inRepo for what git prints at length.
func (r *Repo) streamIn(ctx context.Context, gitDir, top string, c call, read func(io.Reader) error) error {
	if err := r.intoRepo(gitDir, top, &c); err != nil {
		return err
	}
	return r.stream(ctx, c, read)
}

func (r *Repo) intoRepo(gitDir, top string, c *call) error {
	common, err := pointer(gitDir, "commondir", "")
	if err == nil {
		common, err = filepath.EvalSymlinks(common)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && gitDir == r.common:
	case err != nil:
		return err
	case common != r.common:
		return fault.New("remove it", "%s leads to another repo, %s", filepath.Join(gitDir, "commondir"), common)
	}
	c.env = append([]string{"GIT_DIR=" + gitDir, "GIT_COMMON_DIR=" + r.common, "GIT_WORK_TREE=" + top}, c.env...)
	return nil
}

// RepoID names the repo whose common folder is commonDir, for folders of state: the name of the repo's
// folder and 12 hex digits of the SHA-256 of the common folder's real path.
func RepoID(commonDir string) (string, error) {
	abs, err := filepath.Abs(commonDir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	return idOf(real), nil
}

// PlainID is RepoID for a folder that is no checkout, whose real path is top: the one that it has when it becomes one.
func PlainID(top string) string { return idOf(filepath.Join(top, ".git")) }

func idOf(real string) string {
	name := filepath.Base(real)
	if name == ".git" {
		name = filepath.Base(filepath.Dir(real))
	}
	sum := sha256.Sum256([]byte(real))
	return saneName(strings.TrimSuffix(name, ".git")) + "-" + hex.EncodeToString(sum[:6])
}

// maxNameBytes keeps a folder name well below what file systems take.
const maxNameBytes = 64

// saneName keeps [A-Za-z0-9._-] of s, starting with a letter or digit.
func saneName(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s) && len(b) < maxNameBytes; i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			b = append(b, c)
		case len(b) > 0 && (c == '.' || c == '_' || c == '-'):
			b = append(b, c)
		case len(b) > 0 && b[len(b)-1] != '_':
			b = append(b, '_')
		}
	}
	if len(b) == 0 {
		return "repo"
	}
	return string(b)
}

// checkSHA keeps everything that is no full object name off command lines and out of git's input.
func checkSHA(s string) error {
	if len(s) != 40 && len(s) != 64 {
		return fmt.Errorf("not a full object name: %.80q", s)
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("not a full object name: %.80q", s)
		}
	}
	return nil
}

// IsName reports whether s is the full name of an object.
func IsName(s string) bool { return checkSHA(s) == nil }
