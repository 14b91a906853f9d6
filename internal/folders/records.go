package folders

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Record is the record of a folder in which a run works. A task's run is part of its parent.
type Record struct {
	First *tree.Before `json:"first,omitempty"` // how it was before the run's first work there
	// Found is how it was before work that has not passed yet, by step, from its first attempt on.
	// If the branch moves at a pass, the key "" is for the whole folder, and RUN/STEP for a list.
	Found map[string]string `json:"found,omitempty"`
	Work  attemptOf         `json:"work,omitzero"`   // who works there, or did and was not taken
	Of    attemptOf         `json:"of,omitzero"`     // whose work was taken last
	Taken string            `json:"taken,omitempty"` // that work
	At    string            `json:"at,omitempty"`    // HEAD when it was taken
	// Look is the folder when a step first looked at it, before the run's first work there.
	Look string `json:"look,omitempty"`
	// Left is what the run's last agent left there: a commit of its files.
	Left string `json:"left,omitempty"`
	// In a run's own worktree:
	Passed  string   `json:"passed,omitempty"`  // the last passed commit; at first the run's base
	Written []string `json:"written,omitempty"` // files that sluice wrote, from its top
	Moves   []Move   `json:"moves,omitempty"`   // moves of its branch, the last one last
	Back    []string `json:"back,omitempty"`    // where vetoed moves led that were taken back
}

// attemptOf names a step of a run, and its task.
type attemptOf struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	Task string `json:"task,omitempty"` // with the run that has the list
}

func ofJob(j job.Job, step string) attemptOf {
	of := attemptOf{Run: j.Run, Step: step}
	if c := j.RunInfo.Child; c != nil && c.Task != "" {
		of.Task = c.Parent + "/" + c.Task
	}
	return of
}

// same reports whether o continues the same work: the step's next attempt, or the next try of its
// task.
func (a attemptOf) same(o attemptOf) bool {
	return a.Step == o.Step && (a.Run == o.Run || a.Task != "" && a.Task == o.Task)
}

// Records of a folder.
const (
	folderRecord   = "folder"   // its Record
	carriedRecord  = "carried"  // outputs that were copied there
	settingsRecord = "settings" // the files that git's settings named when the run first used it
	reposRecord    = "repos"    // the repositories inside it when the run first used it, without a First
	// An empty file: a step whose work is not taken has begun there since the last taking.
	uncheckedMark = "unchecked"
)

func (x *ground) recordFile(j job.Job, what, top string) string {
	return x.recordOf(topmost(j), what, top)
}

// topmost returns the run of a job, or the topmost one above it.
func topmost(j job.Job) string {
	if c := j.RunInfo.Child; c != nil {
		run, _, _ := strings.Cut(c.Dir, "/")
		return run
	}
	return j.Run
}

func (x *ground) recordOf(run, what, top string) string {
	return filepath.Join(x.State, layout.AttemptsDir, layout.PathElement(run), what+"-"+layout.HexSum([]byte(top))[:16])
}

func (x *ground) record(j job.Job, top string) (r Record, err error) {
	if err = layout.Load(x.recordFile(j, folderRecord, top), &r); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if r.Found == nil {
		r.Found = map[string]string{}
	}
	return r, err
}

// Move is one of sluice's moves of a folder's branch.
type Move struct {
	Of   string `json:"of"` // the passed attempt: RUN/STEP.N; a task's run follows its step's
	From string `json:"from"`
	To   string `json:"to"`
	// Vetoed: to be taken back, but later passed work is built on it. It goes with that work.
	Vetoed bool `json:"vetoed,omitempty"`
}

// within reports whether the work is one of the attempts', or of a run that is part of one.
func (m Move) within(all []string) bool {
	return slices.ContainsFunc(all, func(of string) bool { return m.Of == of || strings.HasPrefix(m.Of, of+"/") })
}

// heldRecord is the locked record of a folder. Nobody else changes it until it is unlocked, even
// while git runs. Locking it twice deadlocks.
type heldRecord struct {
	Record
	file   string
	unlock func()
}

func (r *heldRecord) keep() error { return layout.Save(r.file, r.Record) }

func (x *ground) holdFolder(ctx context.Context, j job.Job, top string) (*heldRecord, error) {
	file := x.recordFile(j, folderRecord, top)
	unlock, err := x.records.Lock(ctx, file)
	if err != nil {
		return nil, err
	}
	r, err := x.record(j, top)
	if err != nil {
		unlock()
		return nil, err
	}
	return &heldRecord{Record: r, file: file, unlock: unlock}, nil
}

// NoteFolder changes and saves the record of a folder.
func (x *ground) NoteFolder(ctx context.Context, j job.Job, top string, change func(*Record)) error {
	r, err := x.holdFolder(ctx, j, top)
	if err != nil {
		return err
	}
	defer r.unlock()
	change(&r.Record)
	return r.keep()
}
