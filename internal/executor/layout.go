package executor

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/agents"
	"sluice/daemon"
	"sluice/internal/atomicfile"
)

const (
	secretFile  = "secret"
	secretBytes = 32
	tokenBytes  = 16 // 32 hex digits

	attemptsDir = "attempts" // a folder for each run
	launchesDir = "launches"

	maxStateFile = 64 << 20 // of a file in the state folder
)

// secretIn gives the secret of a state folder, made at first use.
func secretIn(state string) ([]byte, error) {
	fresh := make([]byte, secretBytes)
	if _, err := rand.Read(fresh); err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	if err := atomicfile.WriteNew(filepath.Join(state, secretFile), fresh, 0o600); err == nil {
		return fresh, nil
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("secret: %w", err)
	}
	data, _, err := atomicfile.OpenRegular(state, secretFile, secretBytes)
	if err == nil && len(data) != secretBytes {
		err = fmt.Errorf("it has %d bytes, not %d", len(data), secretBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("secret in %s: %w: remove it when no agent runs", state, err)
	}
	return data, nil
}

// boot is the mark of the machine's start in which a repo was first served, and of when that was: by the clock, and after
// how long the machine was up. A state folder that is mounted anew, as when its disk had failed, is another start: what was
// not synced may be gone from it.
type boot struct {
	ID    string        `json:"id"`
	Since time.Time     `json:"since"`
	Up    time.Duration `json:"up_ns,omitempty"`
}

const bootFile = "boot"

// bootedIn tells when the repo was first served since the machine's start.
func bootedIn(state string, now time.Time) (boot, error) {
	id, err := agents.BootID()
	if err != nil {
		return boot{}, err
	}
	if mount := atomicfile.MountID(state); mount != "" {
		id += "/" + mount
	}
	var b boot
	path := filepath.Join(state, bootFile)
	if err := kept(path, &b); err == nil && b.ID == id {
		return b, nil
	}
	up, err := agents.Uptime()
	if err != nil {
		return boot{}, err
	}
	b = boot{ID: id, Since: now, Up: up}
	return b, keep(path, b)
}

// at gives the moment before which nothing was started that may still run unseen, as the clock counts now: many machines
// start with one that is hours ahead, and set it right a moment later.
func (b boot) at(now time.Time) time.Time {
	up, err := agents.Uptime()
	if err != nil || b.Up == 0 {
		return b.Since
	}
	if at := now.Add(b.Up - up); at.Before(b.Since) {
		return at
	}
	return b.Since // a clock that was set on, or a sleep of the machine, has what was decided before it wait still
}

// booted is the moment before which nothing was started that may still run.
func (e *Executor) booted() time.Time { return e.boot.at(e.opt.Now()) }

// token is what proves that a word is the launch's own.
func (e *Executor) token(key string) string {
	m := hmac.New(sha256.New, e.secret)
	m.Write([]byte(key))
	return hex.EncodeToString(m.Sum(nil)[:tokenBytes])
}

// tokenOf finds the launch of a token among the keys, those of its corrections included.
func (e *Executor) tokenOf(token string, keys map[string]string) string {
	for key := range keys {
		for try := range corrections + 1 {
			own := correction(key, try)
			if hmac.Equal([]byte(token), []byte(e.token(own))) || hmac.Equal([]byte(token), []byte(e.token(own+afresh))) {
				return key
			}
		}
	}
	return "?"
}

// correction is the key under which an agent is asked again for the try-th time.
func correction(key string, try int) string {
	if try == 0 {
		return key
	}
	return fmt.Sprintf("%s+%d", key, try)
}

// afresh is behind the key of a correction that is asked for in a new conversation, as the one it was to go on with is gone.
const afresh = "f"

// firstKey is the key whose correction, if it is one, this key is of.
func firstKey(key string) string {
	if i := strings.LastIndexByte(key, '+'); i >= 0 {
		return key[:i]
	}
	return key
}

// pidFile is where the launch with the key is known by. All of a key's launches begin with the same name.
func (e *Executor) pidFile(key string) string { return pidFileIn(e.opt.State, key) }

func pidFileIn(state, key string) string {
	run, rest, _ := strings.Cut(key, "/")
	return filepath.Join(state, launchesDir, plain(run), plain(rest)+".pid")
}

// plain makes one path element of a key's part.
func plain(s string) string { return strings.NewReplacer("/", "=", "\\", "=", ":", "=").Replace(s) }

// attemptFile is a file of the state folder about an attempt.
func (e *Executor) attemptFile(run, step string, n int, what string) string {
	return attemptFileIn(e.opt.State, run, step, n, what)
}

func attemptFileIn(state, run, step string, n int, what string) string {
	return filepath.Join(state, attemptsDir, plain(run), fmt.Sprintf("%s.%d.%s", plain(step), n, what))
}

// keep writes a value into the state folder.
func keep(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

// kept reads a value from the state folder; fs.ErrNotExist where there is none.
func kept(path string, v any) error {
	data, _, err := atomicfile.OpenRegular(filepath.Dir(path), filepath.Base(path), maxStateFile)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// runsBelow is where the folders of runs are, below the root.
const runsBelow = ".workflow/runs"

// runDir is the folder of a run, below the root.
func (e *Executor) runDir(run string) string { return runDirIn(e.opt.State, run) }

func runDirIn(state, run string) string {
	if childRun(run) {
		var dir string
		if err := kept(folderFile(state, run), &dir); err == nil && filepath.IsLocal(filepath.FromSlash(dir)) {
			return runsBelow + "/" + dir
		}
	}
	return runsBelow + "/" + run
}

// childRun says that a run's id is that of a child: <run>.<task>.<try>, not <workflow>-<n>.
func childRun(run string) bool {
	i := strings.LastIndexAny(run, ".-")
	return i >= 0 && run[i] == '.'
}

// folderFile says where the folder of a child run is, below .workflow/runs/.
func folderFile(state, run string) string {
	return filepath.Join(state, attemptsDir, plain(run), "folder")
}

// launchDir is the folder of a launch, below the root: k > 1 has one of its own.
func (e *Executor) launchDir(run, what string, n, k int) string {
	return launchDirIn(e.opt.State, run, what, n, k)
}

func launchDirIn(state, run, what string, n, k int) string {
	dir := fmt.Sprintf("%s/%s.%d", runDirIn(state, run), what, n)
	if k > 1 {
		dir += fmt.Sprintf("/launch-%d", k)
	}
	return dir
}

// errLink says that a link lies where a folder of ours should be.
var errLink = errors.New("a link lies in the way: remove it")

// below gives the path of rel below the root, after a look that no link lies on the way to its last element.
func (e *Executor) below(rel string) (string, error) { return under(e.root, rel) }

func under(base, rel string) (string, error) {
	rel = filepath.FromSlash(rel)
	if !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%q leads out of the repo", rel)
	}
	path := base
	parts := strings.Split(rel, string(filepath.Separator))
	for _, part := range parts[:len(parts)-1] {
		path = filepath.Join(path, part)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%s: %w", path, errLink)
		}
		if !info.IsDir() {
			return "", fmt.Errorf("%s: not a folder: move it away", path)
		}
	}
	return filepath.Join(base, rel), nil
}

// makeBelow makes the folder rel below the root, through no link.
func (e *Executor) makeBelow(rel string, perm fs.FileMode) error {
	path, err := e.below(rel + "/x")
	if err != nil {
		return err
	}
	return e.makeDir(filepath.Dir(path), perm)
}

// makeDir makes a folder below the root, where that is there.
func (e *Executor) makeDir(dir string, perm fs.FileMode) error {
	if err := e.there(); err != nil {
		return err
	}
	return atomicfile.MkdirBelow(e.root, dir, perm)
}

// there says whether the repo is where it was: one that was moved away, or whose disk is not mounted, is waited for, and
// nothing is made in its place.
func (e *Executor) there() error {
	look := e.root
	if e.inCheckout() {
		look = filepath.Join(e.opt.Git.Top(), ".git") // the root may be a folder of the checkout
	}
	_, err := os.Lstat(look)
	if err == nil {
		_, err = os.Lstat(e.root)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: move it back, or run `sluice watch rm %[1]s`, and `sluice watch add` where it is now", e.root, atomicfile.ErrGone)
	}
	return err
}

// file writes a file of ours below the root (0600, its folder 0700).
func (e *Executor) file(rel string, data []byte) error {
	path, err := e.below(rel)
	if err != nil {
		return err
	}
	if err := e.makeDir(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

// inRun says in which folder a job's launches have their files, below the root.
func (e *Executor) inRun(job daemon.Job) string {
	p := job.Proc
	switch {
	case p == nil:
		return e.launchDir(job.Run, job.Step, job.N, job.K)
	case p.Gate != "":
		return e.launchDir(job.Run, p.Gate, p.N, p.K)
	case p.Step == "":
		return fmt.Sprintf("%s/after_run.%d", e.runDir(job.Run), p.N)
	}
	return e.launchDir(job.Run, p.Step, p.N, p.K)
}
