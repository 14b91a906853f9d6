package checkouts

import (
	"cmp"
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
	"sync"

	"sluice/internal/atomicfile"
	"sluice/internal/git"
)

const keep = 4

// maxUser is the limit of a user's name, in bytes.
const maxUser = 4 << 10

// Options configures Checkouts.
type Options struct {
	Dir   string    // a folder for these checkouts alone, where no launch can write
	Repo  *git.Repo // where the commits are
	Start string    // names the boot of the machine: another boot's checkouts may be incomplete
	// Over reports whether a user has finished, so that its checkout is free; here means that it
	// got the checkout from this process. nil: users of earlier processes have finished.
	Over func(user string, here bool) bool
}

// Checkouts keeps checkouts of a repo's commits. It is safe for concurrent use by one process.
type Checkouts struct {
	opt Options

	mu    sync.Mutex
	busy  map[int]string // checkouts in use -> by whom
	swept bool
}

// Checkout is a folder with the files of a commit.
type Checkout struct {
	Top    string // the folder; its .git is its own
	Commit string
	// Compiled: the commit has compiled Python, which Python may run in place of its source.
	Compiled bool
	// Git creates its git folder, with HEAD at the commit. objects are the folders to read them
	// from, as the user sees them.
	Git func(ctx context.Context, objects []string) error
}

// New returns the checkouts kept in a folder, which is created at first use.
func New(o Options) *Checkouts { return &Checkouts{opt: o, busy: map[int]string{}} }

// At returns a user's checkout of a commit, until Release. A user's existing checkout is updated to
// the commit.
func (c *Checkouts) At(ctx context.Context, commit, user string) (*Checkout, error) {
	if user == "" || len(user) > maxUser {
		return nil, fmt.Errorf("checkout of %.12s: its user has no name, or one of more than %d bytes", commit, maxUser)
	}
	n, err := c.take(commit, user)
	if err != nil {
		return nil, fmt.Errorf("checkout of %.12s: %w", commit, err)
	}
	s := seat{dir: c.dir(n), repo: c.opt.Repo, start: c.opt.Start}
	entries, err := s.update(ctx, commit)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("checkout of %.12s: %w", commit, err), c.Release(user))
	}
	made := func(ctx context.Context, objects []string) error {
		return c.opt.Repo.PlainFolder(ctx, filepath.Join(s.top(), gitName), commit, s.file(indexName), objects)
	}
	return &Checkout{Top: s.top(), Commit: commit, Compiled: slices.ContainsFunc(entries, compiled), Git: made}, nil
}

func compiled(e git.Entry) bool { return strings.HasSuffix(e.Path, ".pyc") }

// Release ends a user's use of its checkout, if it has one.
func (c *Checkouts) Release(user string) error {
	gone, err := c.leave(user)
	if err != nil || gone == "" {
		return err
	}
	return remove(gone)
}

// Of returns the folder of a user's checkout, as the user left it; "" if it has none.
func (c *Checkouts) Of(user string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := c.list()
	if err != nil {
		return ""
	}
	for _, n := range list {
		if c.userOf(n) == user {
			return seat{dir: c.dir(n)}.top()
		}
	}
	return ""
}

// leave gives up a checkout; gone is its new path if it is not kept.
func (c *Checkouts) leave(user string) (gone string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := c.list()
	if err == nil {
		err = c.sweep() // first, because leave renames one to be removed concurrently
	}
	if err != nil {
		return "", err
	}
	for _, n := range list {
		if c.userOf(n) != user {
			continue
		}
		if len(list) > keep {
			gone = filepath.Join(c.opt.Dir, goneMark+rand.Text())
			err = os.Rename(c.dir(n), gone)
		} else {
			err = os.Remove(filepath.Join(c.dir(n), userName))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		delete(c.busy, n)
		return gone, err
	}
	return "", nil
}

// goneMark begins the names of checkouts that are being removed.
const goneMark = "gone-"

func remove(dir string) error {
	s := seat{dir: dir}
	root, err := s.open()
	if err != nil {
		return err
	}
	defer root.Close()
	err = root.Chmod(treeName, 0o700)
	if err == nil {
		err = root.Rename(treeName, path.Join(trashName, rand.Text()))
	}
	if err == nil {
		err = s.clear()
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// sweep removes checkouts that a killed process left half removed.
func (c *Checkouts) sweep() error {
	if c.swept {
		return nil
	}
	c.swept = true
	left, err := atomicfile.Glob(c.opt.Dir, goneMark+"*")
	for _, dir := range left {
		err = errors.Join(err, remove(dir))
	}
	return err
}

// take returns a checkout for the user: its own; or a free one, preferably at the commit; or a new
// one.
func (c *Checkouts) take(commit, user string) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := os.MkdirAll(c.opt.Dir, 0o700)
	if err == nil {
		err = c.sweep()
	}
	if err != nil {
		return 0, err
	}
	list, err := c.list()
	if err != nil {
		return 0, err
	}
	found, free := 0, 1
	for _, n := range list {
		if n == free {
			free++
		}
		switch by := c.userOf(n); {
		case by == user:
			c.busy[n] = user
			return n, nil
		case by == "" || c.over(by, c.busy[n] != ""):
			if found == 0 || commitOf(c.dir(n)) == commit && commitOf(c.dir(found)) != commit {
				found = n
			}
		}
	}
	found = cmp.Or(found, free)
	if err := os.MkdirAll(c.dir(found), 0o700); err != nil {
		return 0, err
	}
	// Written first: after a crash the checkout is this user's.
	if err := atomicfile.Write(filepath.Join(c.dir(found), userName), []byte(user), 0o600); err != nil {
		return 0, err
	}
	c.busy[found] = user
	return found, nil
}

func (c *Checkouts) over(user string, here bool) bool {
	if c.opt.Over == nil {
		return !here
	}
	return c.opt.Over(user, here)
}

// list returns the numbers of the existing checkouts, ascending.
func (c *Checkouts) list() ([]int, error) {
	entries, err := os.ReadDir(c.opt.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	last := 0
	there := map[int]bool{}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && e.IsDir() {
			there[n], last = true, max(last, n)
		}
	}
	var out []int
	for n := 1; n <= last && len(out) < len(there); n++ {
		if there[n] {
			out = append(out, n)
		}
	}
	return out, nil
}

func (c *Checkouts) dir(n int) string { return filepath.Join(c.opt.Dir, strconv.Itoa(n)) }

// userOf returns who uses a checkout; "" = nobody.
func (c *Checkouts) userOf(n int) string {
	if by := c.busy[n]; by != "" {
		return by
	}
	data, _, err := atomicfile.OpenRegular(c.dir(n), userName, maxUser)
	if err != nil {
		return ""
	}
	return string(data)
}
