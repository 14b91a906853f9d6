package checkouts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"

	"sluice/internal/atomicfile"
	"sluice/internal/git"
)

// keep is how many checkouts stay when nobody uses them.
const keep = 4

// maxUser bounds the name of a user.
const maxUser = 4 << 10

// Options are what Checkouts are made of.
type Options struct {
	Dir   string    // a folder of the caller's for these checkouts alone, in which no launch can write
	Repo  *git.Repo // where the commits are
	Start string    // names the start of the machine: what another one left may not be whole
	// Over says that a user is over, so that its checkout is free; here: it got it from this process. nil: those of
	// before are.
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
	// Git makes its git folder, with HEAD at the commit; objects are the folders to read them from, as the user sees them.
	Git func(ctx context.Context, objects []string) error
}

// New gives the checkouts kept in a folder, which is made at first use.
func New(o Options) *Checkouts { return &Checkouts{opt: o, busy: map[int]string{}} }

// At gives a user a checkout of a commit, until Release. A user that has one has it brought to the commit again.
func (c *Checkouts) At(ctx context.Context, commit, user string) (*Checkout, error) {
	if user == "" || len(user) > maxUser {
		return nil, fmt.Errorf("checkout of %.12s: its user has no name, or one of more than %d bytes", commit, maxUser)
	}
	n, err := c.take(commit, user)
	if err != nil {
		return nil, fmt.Errorf("checkout of %.12s: %w", commit, err)
	}
	s := seat{dir: c.dir(n), repo: c.opt.Repo, start: c.opt.Start}
	if err := s.update(ctx, commit); err != nil {
		return nil, errors.Join(fmt.Errorf("checkout of %.12s: %w", commit, err), c.Release(user))
	}
	return &Checkout{Top: s.top(), Commit: commit, Git: func(ctx context.Context, objects []string) error {
		return c.opt.Repo.PlainFolder(ctx, filepath.Join(s.top(), gitName), commit, s.file(indexName), objects)
	}}, nil
}

// Release ends a user's use of its checkout, if it has one.
func (c *Checkouts) Release(user string) error {
	gone, err := c.leave(user)
	if err != nil || gone == "" {
		return err
	}
	return remove(gone)
}

// Of gives the folder of a user's checkout, as it has left it; "" where it has none.
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

// leave gives a checkout up; gone is where it is then, if it is not to be kept.
func (c *Checkouts) leave(user string) (gone string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := c.list()
	if err == nil {
		err = c.sweep() // before one of ours is among them, which is removed at the same time
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

// remove removes a checkout with all that is in it.
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

// sweep removes what a process that was killed left of checkouts that were being removed.
func (c *Checkouts) sweep() error {
	if c.swept {
		return nil
	}
	c.swept = true
	left, err := filepath.Glob(filepath.Join(c.opt.Dir, goneMark+"*"))
	for _, dir := range left {
		err = errors.Join(err, remove(dir))
	}
	return err
}

// take finds a checkout for the user: its own, else one that is free, best one that is at the commit, else a new one.
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
	if found == 0 {
		found = free
	}
	if err := os.MkdirAll(c.dir(found), 0o700); err != nil {
		return 0, err
	}
	// Before anything is written there: after a crash the checkout is this user's.
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

// list gives the numbers of the checkouts there are, ascending.
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

// userOf names who uses a checkout; "" = nobody.
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
