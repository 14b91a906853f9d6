// Package layout says where the files of a repo are, by which names, and keeps the secret that
// makes the launches' tokens. The names are promises: a daemon of this release goes on with what
// one of the release before has written.
//
// # Where things are
//
// What others may read, and agents may write, lies in .workflow/: runs/<run>/<step>.<n>/ has the prompt, the output and
// the end of each launch (from the second one on in launch-<k>/), <gate>.<round>/ those of reviews. Package work makes
// the folder, launch writes the prompt, the shim of package agents the output and the end; `sluice clean` removes it
// with the whole run (package retention). What a decision
// hangs on lies in the state folder, out of an agent's reach:
//
//	secret                           makes the launches' tokens: HMAC-SHA256 of a launch's key, so that they outlive
//	                                 a restart and are written down nowhere
//	boot                             the start of the machine and the mount of this folder in which the repo was first
//	                                 served, when that was by the clock, and how long the machine was up
//	launches/<run>/<key>.pid         who is (or was) the process of a launch, and how it ended (see package agents)
//	launches/<run>/<key>.pid.stop    the launch is to end, or not to start
//	launches/<run>/<key>.pid.agent   by which program its output was made
//	launches/<run>/<key>.pid.idle    it was ended because it said nothing for its idle_timeout
//	launches/<run>/<key>.pid.git     which git folder is a held launch's own, and where its work began
//	gits/<run>/<key>                 that folder; it goes when its commits were taken
//	attempts/<run>/<step>.<n>.begin  how the worktree was when the attempt began
//	attempts/<run>/<step>.<n>.files  what the attempt declared and changed: what a person's pass is bound to
//	attempts/<run>/pull.json         the run's pull request: its number, what was pushed, which comments were dealt with
//	retry/<digest of its path>       which run wrote a retry-context file: those of ended runs are swept away
//	judge/<k>/                       a checkout of a taken commit for those who judge (see package gates/checkouts)
//	setup/<digest>/<i>               what a setup has made for those who judge, in the order of its `provides`
//	making/<digest of its path>      a worktree is being made: one that a kill left half made is completed
//	remote                           the address that is asked for pull requests, as it was when it was first needed
//
// A launch's <key> is what follows the run in its engine key, with "=" for "/" and ":": write#2.1
// (step, attempt, launch), check#1.1 (gate, round, launch), write#1.hook, write#1.check-7=0 (the
// first command of a check), after_run-12; "+1" and "+2" behind it are the corrections, where an
// agent is asked again for an answer that could not be read. What ends a key ends these too.
package layout

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

	"sluice/internal/atomicfile"
	"sluice/internal/job"
)

const (
	secretFile  = "secret"
	secretBytes = 32
	tokenBytes  = 16 // 32 hex digits

	AttemptsDir = "attempts" // a folder for each run
	ReviewsDir  = "reviews"  // likewise: changes that a person comments on, until the answer is given
	LaunchesDir = "launches"

	maxStateFile = 64 << 20 // of a file in the state folder
)

// Layout says where the files of a repo are: below its root what others may read, and in its state
// folder what a decision depends on.
type Layout struct {
	Root  string // real path
	State string // outside the repo
	Top   string // of the checkout, of which the root may be a folder; "" = it is in none
	// Given returns the token of a launch that is not made of this folder's secret; "" = it is. nil: all are.
	Given  func(key string) string
	secret []byte
}

// Open makes the state folder (0700) and its secret at first use, where the repo is there.
func (l *Layout) Open() error {
	if err := l.There(); err != nil {
		return err
	}
	if err := os.MkdirAll(l.State, 0o700); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	data, _, err := atomicfile.OpenRegular(l.State, secretFile, secretBytes)
	if errors.Is(err, fs.ErrNotExist) {
		l.secret = make([]byte, secretBytes)
		_, _ = rand.Read(l.secret) // never fails
		err = atomicfile.WriteNew(filepath.Join(l.State, secretFile), l.secret, 0o600)
		if err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("secret: %w", err)
		}
		data, _, err = atomicfile.OpenRegular(l.State, secretFile, secretBytes) // another process was first
	}
	if err == nil && len(data) != secretBytes {
		err = fmt.Errorf("it has %d bytes, not %d", len(data), secretBytes)
	}
	if err != nil {
		return fmt.Errorf("secret in %s: %w: remove it when no agent runs", l.State, err)
	}
	l.secret = data
	return nil
}

// Token is what proves that a word is the launch's own.
func (l Layout) Token(key string) string {
	if l.Given != nil {
		if token := l.Given(key); token != "" {
			return token
		}
	}
	return MakeToken(l.secret, key)
}

// MakeToken returns the token of a launch, made of a secret.
func MakeToken(secret []byte, key string) string {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(key))
	return hex.EncodeToString(m.Sum(nil)[:tokenBytes])
}

// TokenOf finds the launch of a token among the keys, those of its corrections included; "?" = none.
func (l Layout) TokenOf(token string, keys map[string]string, corrections int) string {
	for key := range keys {
		for try := range corrections + 1 {
			own := Correction(key, try)
			if hmac.Equal([]byte(token), []byte(l.Token(own))) || hmac.Equal([]byte(token), []byte(l.Token(own+Afresh))) {
				return key
			}
		}
	}
	return "?"
}

// Correction is the key under which an agent is asked again for the try-th time.
func Correction(key string, try int) string {
	if try == 0 {
		return key
	}
	return fmt.Sprintf("%s+%d", key, try)
}

// Afresh is behind the key of a correction that is asked for in a new conversation, as the one it
// was to go on with is gone.
const Afresh = "f"

// FirstKey is the key whose correction, if it is one, this key is of.
func FirstKey(key string) string {
	if i := strings.LastIndexByte(key, '+'); i >= 0 {
		return key[:i]
	}
	return key
}

// PIDFile is where the launch with the key is known by. All of a key's launches begin with the same name.
func (l Layout) PIDFile(key string) string {
	run, rest, _ := strings.Cut(key, "/")
	return filepath.Join(l.State, LaunchesDir, PathElement(run), PathElement(rest)+".pid")
}

// PathElement makes one path element of a key's part.
func PathElement(s string) string {
	return strings.NewReplacer("/", "=", "\\", "=", ":", "=").Replace(s)
}

// AttemptFile is a file of the state folder about an attempt.
func (l Layout) AttemptFile(run, step string, n int, what string) string {
	return filepath.Join(l.State, AttemptsDir, PathElement(run), fmt.Sprintf("%s.%d.%s", PathElement(step), n, what))
}

// Save writes a value into the state folder.
func Save(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

// Load reads a value from the state folder; fs.ErrNotExist where there is none.
func Load(path string, v any) error {
	data, err := atomicfile.Read(path, maxStateFile)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// RunsDir is where the folders of runs are, below the root.
const RunsDir = WorkflowDir + "/runs"

// The other folders that a person writes to or reads, below a repo's root.
const (
	WorkflowDir = ".workflow"
	SpecsDir    = WorkflowDir + "/specs"
	SignalsDir  = WorkflowDir + "/signals"       // the inbox
	RetryDir    = WorkflowDir + "/retry-context" // what was wrong with failed work, a file for each failure
	StubsDir    = WorkflowDir + "/stubs"         // the stand-in scripts, each <workflow-id>.yaml
)

// RunDir is the folder of a run, below the root.
func (l Layout) RunDir(run string) string {
	if ChildRun(run) {
		var dir string
		if err := Load(l.FolderFile(run), &dir); err == nil && filepath.IsLocal(filepath.FromSlash(dir)) {
			return RunsDir + "/" + dir
		}
	}
	return RunsDir + "/" + run
}

// ChildRun reports whether a run's id is that of a child: <run>.<task>.<try>, not <workflow>-<n>.
func ChildRun(run string) bool {
	i := strings.LastIndexAny(run, ".-")
	return i >= 0 && run[i] == '.'
}

// FolderFile returns where the folder of a child run is, below .workflow/runs/.
func (l Layout) FolderFile(run string) string {
	return filepath.Join(l.State, AttemptsDir, PathElement(run), "folder")
}

// ExposedName is the file, in a run's folder of AttemptsDir, that marks the run as exposed: some
// launch of it was not held, so it has level file for good.
const ExposedName = "exposed"

// ExposedFile returns where the mark of an exposed run is.
func (l Layout) ExposedFile(run string) string {
	return filepath.Join(l.State, AttemptsDir, PathElement(run), ExposedName)
}

// Exposed reports whether the run is exposed, and why.
func (l Layout) Exposed(run string) (why string, exposed bool) {
	mark := l.ExposedFile(run)
	if _, err := os.Lstat(mark); err != nil {
		return "", false
	}
	return WhyExposed(mark, "one of its launches ran outside the sandbox"), true
}

// WhyExposed returns the reason in the mark of an exposed run or of a launch that is not held, else
// the given one: a mark counts even if a power cut has left it empty.
func WhyExposed(mark, otherwise string) (why string) {
	if Load(mark, &why) != nil || why == "" {
		return otherwise
	}
	return why
}

// LaunchDir is the folder of a launch, below the root: k > 1 has one of its own.
func (l Layout) LaunchDir(run, what string, n, k int) string {
	dir := fmt.Sprintf("%s/%s.%d", l.RunDir(run), what, n)
	if k > 1 {
		dir += fmt.Sprintf("/launch-%d", k)
	}
	return dir
}

// errLink says that a link is where a folder of ours should be.
var errLink = errors.New("a link is in the way: remove it")

// Path returns where a file below the root is, by its path with slashes from there.
func (l Layout) Path(rel string) string { return filepath.Join(l.Root, filepath.FromSlash(rel)) }

// Below returns the path of rel below the root, after a look that no link lies on the way to its last element.
func (l Layout) Below(rel string) (string, error) { return Under(l.Root, rel) }

// Under is Below for another base than the root.
func Under(base, rel string) (string, error) {
	rel = filepath.FromSlash(rel)
	if !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%q leads out of the repo", rel)
	}
	path := filepath.Join(base, rel)
	if atomicfile.PlainDir(filepath.Dir(path)) {
		return path, nil
	}
	path = base
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

// MakeBelow makes the folder rel below the root, through no link.
func (l Layout) MakeBelow(rel string, perm fs.FileMode) error {
	local := filepath.FromSlash(rel)
	dir := filepath.Join(l.Root, local)
	if filepath.IsLocal(local) && atomicfile.PlainDir(dir) {
		return nil
	}
	if err := l.There(); err != nil {
		return err
	}
	if filepath.IsLocal(local) && local != "." && atomicfile.MkdirPlain(dir, perm) {
		return nil
	}
	if _, err := l.Below(rel + "/x"); err != nil {
		return err
	}
	return atomicfile.MkdirBelow(l.Root, dir, perm)
}

// MakeDir makes a folder below the root, where that is there.
func (l Layout) MakeDir(dir string, perm fs.FileMode) error {
	if err := l.There(); err != nil {
		return err
	}
	return atomicfile.MkdirBelow(l.Root, dir, perm)
}

// There says whether the repo is where it was: one that was moved away, or whose disk is not
// mounted, is waited for, and nothing is made in its place.
func (l Layout) There() error {
	look := l.Root
	if l.Top != "" {
		look = filepath.Join(l.Top, ".git")
	}
	_, err := os.Lstat(look)
	if err == nil && l.Top != l.Root && l.Top != "" {
		_, err = os.Lstat(l.Root)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: move it back, or run `sluice watch rm %[1]s`, and `sluice watch add` where it is now",
			l.Root, atomicfile.ErrGone)
	}
	return err
}

// WriteFile writes a file of ours below the root (0600, its folder 0700).
func (l Layout) WriteFile(rel string, data []byte) error {
	path, err := l.Below(rel)
	if err != nil {
		return err
	}
	if err := l.MakeDir(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

// JobDir says in which folder a job's launches have their files, below the root.
func (l Layout) JobDir(job job.Job) string {
	p := job.Proc
	switch {
	case p == nil:
		return l.LaunchDir(job.Run, job.Step, job.N, job.K)
	case p.Gate != "":
		return l.LaunchDir(job.Run, p.Gate, p.N, p.K)
	case p.Step == "":
		return fmt.Sprintf("%s/after_run.%d", l.RunDir(job.Run), p.N)
	}
	return l.LaunchDir(job.Run, p.Step, p.N, p.K)
}

// KeepBriefly writes a value into the state folder that matters only while the machine is up:
// nothing waits for the disk.
func KeepBriefly(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return WriteBriefly(path, data)
}

// WriteBriefly writes a file, and the folder that it lies in where that is missing.
func WriteBriefly(path string, data []byte) error {
	err := atomicfile.Put(path, data, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Dir(path)
		if err = os.Mkdir(dir, 0o700); err != nil { // its parent is missing too, or another has made it
			err = os.MkdirAll(dir, 0o700)
		}
		if err == nil {
			err = atomicfile.Put(path, data, 0o600)
		}
	}
	return err
}
