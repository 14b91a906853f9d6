package layout

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sluice/engine"
)

// IsState reports whether a path is in the state space, which is the root's wherever it is named.
func IsState(p string) bool {
	first, _, _ := strings.Cut(path.Clean(filepath.ToSlash(p)), "/")
	return strings.EqualFold(first, WorkflowDir)
}

// Behind the name of a pid file.
const (
	InboxMark = ".in"   // the folder that is a launch's own inbox
	OpenMark  = ".open" // the launch is not held: it could answer a gate
)

// OwnDir is the folder of a held launch, below that of its files, which it may write to: its answer lies there.
const OwnDir = "own"

// HomesDir holds the private homes of held launches: one for each step, reviewer or conversation of a run.
const HomesDir = "homes"

// LaunchOf is the launch that a key's words count for: a correction is asked for its answer alone,
// yet what it signals is its launch's.
func LaunchOf(key string) string {
	base, _, _ := strings.Cut(key, "+")
	return base
}

// GitsDir has the git folders of held launches that work in a checkout, below a folder for each run.
const GitsDir = "gits"

// GitMark is behind the name of a launch's pid file: the file says which git folder is its own.
const GitMark = ".git"

// IdleMark is beside the pid file of a launch that was ended because it said nothing.
const IdleMark = ".idle"

// SentMark follows a pid file's name in that of the record of a launch on a worker.
const SentMark = ".sent"

// BackMark ends the name of a file beside it: what the worker returned of the work is in the folder here,
// or is refused.
const BackMark = ".back"

// Files of a launch, in its folder.
const (
	PromptName = "prompt.md"
	AnswerName = "answer.json"
	ExitName   = "exit.json"  // how it ended
	OfferName  = "offer.json" // an offered step, for whoever takes it
)

// Files about an attempt in the state folder: see AttemptFile.
const (
	BeganFile    = "begin"    // how the worktree was when it began
	CheckedFile  = "files"    // what it declared and changed
	ReceivedFile = "received" // which commits of its launch were taken in
)

// FilesDir is the folder, in that of a run, for what steps hand on.
const FilesDir = "files"

// Ended reports whether the launch whose files are in dir has ended.
func Ended(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ExitName))
	return err == nil
}

// Shown is a path as people know it: from the root, where it is below it.
func (l Layout) Shown(path string) string {
	if rel, inside := Rel(l.Root, path); inside {
		return rel
	}
	return path
}

// TreeDir is the folder of a checkout's key.
func (l Layout) TreeDir(key string) string {
	if filepath.IsAbs(key) {
		return key
	}
	return l.Path(key)
}

// Signals is the inbox of the root.
func (l Layout) Signals() string { return InboxOf(l.Root) }

// InboxOf is the inbox below a folder.
func InboxOf(dir string) string { return filepath.Join(dir, filepath.FromSlash(SignalsDir)) }

// SignalFile is the file by which an attempt says that it is done; "" where no file does.
func (l Layout) SignalFile(run string, st *engine.Step) string {
	if st.Signal.Type != engine.SignalFile {
		return ""
	}
	name := filepath.Base(filepath.FromSlash(st.Signal.Value))
	if st.Signal.Value == "" {
		name = st.ID + "-done.json"
	}
	return filepath.Join(l.Signals(), run, name)
}

// RetryPath is where a retry-context file of the run is now: those of a run that was over when another one began were
// moved to its folder.
func (l Layout) RetryPath(run, p string) string {
	if _, err := os.Lstat(l.Path(p)); err == nil {
		return p
	}
	moved := l.RunDir(run) + "/retry-context/" + path.Base(p)
	if _, err := os.Lstat(l.Path(moved)); err != nil {
		return p
	}
	return moved
}

// SeenFrom is a path as one in dir would write it.
func SeenFrom(dir, p string) string {
	if rel, err := filepath.Rel(dir, p); err == nil {
		return filepath.ToSlash(rel)
	}
	return p
}

// AttemptName names an attempt in the names of our refs.
func AttemptName(run, step string, n int) string { return fmt.Sprintf("%s/%s.%d", run, step, n) }

// Inside reports whether p is a folder or is below it.
func Inside(dir, p string) bool {
	_, inside := Rel(dir, p)
	return inside
}

// Rel returns the path of p from a folder, with slashes; inside = p is the folder or is below it.
func Rel(dir, p string) (rel string, inside bool) {
	rel, err := filepath.Rel(dir, p)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// SetupMark is in the keys of launches that set something up for those who judge.
const SetupMark = "/setup-"

// TaskName is the file of a child run's folder that holds its task.
const TaskName = "task.json"

// ReplyFile is the file with a launch's reply if no answer or verdict could be read from it.
const ReplyFile = "reply.txt"
