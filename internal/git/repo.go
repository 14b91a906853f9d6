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
	"regexp"
	"strings"
	"sync"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/memo"
)

// ErrNoRepo is returned for a folder outside any git repository with a worktree.
var ErrNoRepo = errors.New("no git repository")

// ErrNotWorktree is returned for a folder that is not a checkout of this repo.
var ErrNotWorktree = errors.New("not a worktree of this repo")

// maxPointerBytes limits the small files in which git stores a path.
const maxPointerBytes = 8 << 10

// Repo is one git repository. It is safe for concurrent use. Its parts share one place.
type Repo struct {
	*place
	*refs
	*objects
	submodules
	spares
	staging string // of Options

	gathering sync.Mutex // guards gatherAt
	gatherAt  int        // packs from which gather works; 0: it has not yet
}

// place is where a repo is, and what git is asked there without a shadow.
type place struct {
	tool
	top    string // top level of the checkout it was opened in
	common string // the folder shared by all worktrees
	format string // sha1 or sha256
	plain  bool   // top is not a checkout, and common is a store of ours
	opened time.Time

	configs memo.Memo[string, configKept] // by file
}

// Options are how a repo is opened; the zero value is valid.
type Options struct {
	// Scratch is the caller's persistent folder for this repo alone: its private indexes save
	// reading every file again. "" = a folder of ours, made when needed and removed by Close.
	Scratch string
	// Staging is a folder below the opened checkout, on its file system, that no agent can write
	// to. Worktrees are created there and moved into place when complete. "" = they are created in
	// place.
	Staging string
	Turns   Turns // shared with other repos
}

// Open opens the repo that dir is in. Close it.
func Open(ctx context.Context, dir string) (*Repo, error) { return OpenWith(ctx, dir, Options{}) }

// OpenWith opens the repo that dir is in. Errors are ErrNoGit, ErrNoRepo, or of the system. Of an
// ordinary repo git is asked when it is first needed: the daemon opens many that only wait.
func OpenWith(ctx context.Context, dir string, o Options) (*Repo, error) {
	t, err := findTool()
	if err != nil {
		return nil, err
	}
	top, err := Toplevel(dir)
	if err != nil {
		return nil, err
	}
	p := &place{tool: t, top: top, format: "sha1"}
	if p.common, err = CommonDir(top); err == nil && !p.isOrdinary() {
		p.format, err = p.accept(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open the repo at %s: %w", top, err)
	}
	return p.open(ctx, o)
}

// ordinaryConfig matches a config that has only lines as git itself writes them; core has those of git init.
const ordinaryConfig = `^(\[core\]\n(\trepositoryformatversion = 0\n|` +
	`\t(filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks) = (true|false)\n)*|` +
	`\[(remote|branch|user)( "[^"\\\n]+")?\]\n(\t[A-Za-z-]+ = [^"\\#;\n]*\n)*)*$`

// isOrdinary reports whether the repo's files show that any git accepts it.
func (p *place) isOrdinary() bool {
	own, none := gitFolder(p.top)
	sha, to, _ := readRef(own, "HEAD") // a broken one has neither
	config, _, err := atomicfile.OpenRegular(p.common, "config", maxConfigList)
	return none == nil && err == nil && sha+to != "" && isDir(filepath.Join(p.common, "objects")) &&
		isDir(filepath.Join(p.common, "refs")) && regexp.MustCompile(ordinaryConfig).Match(config)
}

// accept returns the format of the repo's objects, or an error if git does not accept the repo.
func (p *place) accept(ctx context.Context) (format string, err error) {
	out, err := p.run(ctx, call{args: []string{"rev-parse", "--show-object-format"}, dir: p.top, safeDir: p.top,
		env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(p.top)}})
	if format = strings.TrimSpace(string(out)); err == nil && format != "sha1" && format != "sha256" {
		err = fault.New("install git 2.36 or newer", "this git is too old")
	}
	return format, err
}

// open prepares a repo for its first call.
func (p *place) open(ctx context.Context, o Options) (*Repo, error) {
	p.opened, p.turns = time.Now(), o.Turns
	shadow := &shadowGit{place: p, scratch: o.Scratch}
	r := &Repo{place: p, refs: &refs{place: p}, objects: &objects{shadowGit: shadow}, submodules: submodules{place: p},
		spares: spares{ready: map[string]laid{}}, staging: o.Staging}
	if o.Scratch == "" {
		return r, nil // most callers that open a repo briefly never need it
	}
	var err error
	if p.gits, err = lockScratch(ctx, o.Scratch); err != nil {
		return nil, fmt.Errorf("open the repo at %s: %w", p.top, err)
	}
	return r, nil
}

// Close removes what the repo kept outside itself.
func (r *shadowGit) Close() error {
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

// Top returns the real path of the top level of the checkout that the repo was opened in.
func (r *place) Top() string { return r.top }

// CommonDir returns the real path of the git folder that all worktrees share.
func (r *place) CommonDir() string { return r.common }

// GitDir returns the real path of a checkout's git folder: the common one for the main checkout,
// one below its worktrees/ for a linked one. Other folders are ErrNotWorktree.
func (r *place) GitDir(top string) (string, error) {
	dir, _, err := r.gitDirOf(top)
	if err == nil {
		dir, err = atomicfile.RealPath(dir)
	}
	return dir, err
}

// Linked returns the real paths of the existing linked worktrees, from the git folder. It runs no
// git.
func (r *place) Linked() ([]string, error) {
	var out []string
	err := r.eachLinked("", func(_, tree string) (found bool) {
		if real, err := atomicfile.RealPath(tree); err == nil {
			out = append(out, real)
		}
		return false
	})
	return out, err
}

// linkedDir is the folder of git's entries of linked worktrees.
func (r *place) linkedDir() string { return filepath.Join(r.common, "worktrees") }

// eachLinked visits git's entries of linked worktrees until is reports true: admin is the entry's
// folder, tree the worktree's recorded path. It skips unreadable entries. The first is that of the
// worktree at likely, if git has named it after its folder.
func (r *place) eachLinked(likely string, is func(admin, tree string) (found bool)) error {
	dir := r.linkedDir()
	visit := func(name string) (found bool) {
		admin := filepath.Join(dir, name)
		dot, err := pointer(admin, "gitdir", "")
		return err == nil && is(admin, filepath.Dir(dot))
	}
	if likely != "" && visit(filepath.Base(likely)) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if visit(e.Name()) {
			return nil
		}
	}
	return ignoreGone(err)
}

// Toplevel returns the real path of the top level of the checkout around path, which must exist. It
// is the key of that checkout: equal for all paths in it.
func Toplevel(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := atomicfile.RealPath(abs)
	if err != nil {
		return "", fmt.Errorf("%w at %s: %w", ErrNoRepo, path, err)
	}
	return above(real)
}

// above is Toplevel of a real path.
func above(path string) (string, error) {
	for dir := path; ; dir = filepath.Dir(dir) {
		if isCheckout(dir) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fault.New("run git init", "%w at %s: neither it nor a folder above it has one", ErrNoRepo, path)
		}
	}
}

// isCheckout reports whether git would accept dir as the top level of a checkout: an empty folder
// called .git is not enough.
func isCheckout(dir string) bool {
	dot, err := gitFolder(dir)
	if err == nil {
		_, err = os.Lstat(filepath.Join(dot, "HEAD"))
	}
	return err == nil
}

// gitFolder returns the git folder that the checkout at top names.
func gitFolder(top string) (string, error) {
	dot := filepath.Join(top, ".git")
	if info, err := os.Stat(dot); err != nil || info.IsDir() {
		return dot, err
	}
	return pointer(top, ".git", "gitdir: ")
}

// CommonDir returns the real path of the git folder that the checkout at top shares with its
// worktrees. It runs no git.
func CommonDir(top string) (string, error) {
	dot, err := gitFolder(top)
	if err != nil {
		return "", err
	}
	switch shared, err := pointer(dot, "commondir", ""); {
	case err == nil:
		dot = shared
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	return atomicfile.RealPath(dot)
}

// pointer reads the path after the prefix in a file of git's; a relative one is relative to dir.
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

// gitDirOf finds the git folder of the worktree at path through the common folder, because whoever
// works in the worktree controls its .git file.
func (r *place) gitDirOf(path string) (gitDir, top string, err error) {
	if top, err = atomicfile.RealPath(path); err != nil {
		return "", "", err
	}
	if top, err = filepath.Abs(top); err != nil {
		return "", "", err
	}
	if filepath.Join(top, ".git") == r.common {
		return r.common, top, nil
	}
	err = r.eachLinked(top, func(admin, tree string) (found bool) {
		if real, err := atomicfile.RealPath(tree); err == nil && real == top {
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
		// A main checkout with its git folder elsewhere: git init --separate-git-dir, a submodule.
		return r.common, top, nil
	}
	return "", "", fault.New("open the repo it belongs to", "%w: %s", ErrNotWorktree, path)
}

// inRepo runs a call that needs the repo itself. All folders are named, so git searches for none
// and ignores the worktree's .git file. A commondir file would still redirect refs, so one that
// leads elsewhere is an error: it was planted.
func (r *place) inRepo(ctx context.Context, gitDir, top string, c call) ([]byte, error) {
	if err := r.intoRepo(gitDir, top, &c); err != nil {
		return nil, err
	}
	return r.run(ctx, c)
}

// streamIn is inRepo for long output.
func (r *place) streamIn(ctx context.Context, gitDir, top string, c call, read func(io.Reader) error) error {
	if err := r.intoRepo(gitDir, top, &c); err != nil {
		return err
	}
	return r.stream(ctx, c, read)
}

func (r *place) intoRepo(gitDir, top string, c *call) error {
	common, err := pointer(gitDir, "commondir", "")
	if err == nil {
		common, err = atomicfile.RealPath(common)
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

// PlainID is the RepoID of a folder, with real path top, once it is a checkout.
func PlainID(top string) string { return RepoID(filepath.Join(top, ".git")) }

// RepoID returns a name for state folders of the repo whose CommonDir is common: the repo folder's
// name and 12 hex digits of the path's SHA-256.
func RepoID(common string) string {
	name := filepath.Base(common)
	if name == ".git" {
		name = filepath.Base(filepath.Dir(common))
	}
	sum := sha256.Sum256([]byte(common))
	return saneName(strings.TrimSuffix(name, ".git")) + "-" + hex.EncodeToString(sum[:6])
}

// maxNameBytes keeps a folder name well below file system limits.
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

// checkSHA keeps anything but full object names off command lines and out of git's input.
func checkSHA(names ...string) error {
	for _, s := range names {
		if len(s) != 40 && len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
			return fmt.Errorf("not a full object name: %.80q", s)
		}
	}
	return nil
}

// IsName reports whether s is a full object name.
func IsName(s string) bool { return checkSHA(s) == nil }
