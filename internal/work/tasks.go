package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/job"
	"sluice/internal/tasks"
)

// stampMissing is the stamp of a missing or empty task file.
const stampMissing = "missing"

type taskFile struct {
	stamp   string
	file    *tasks.File // nil: it is invalid or missing
	invalid string
	bad     []byte // the text of an invalid file
	seen    []engine.TaskSeen
	gone    map[string]json.RawMessage // tasks that earlier versions had: a removal may be refused
	stubbed []int                      // indexes of those that stand-ins have done
	stat    atomicfile.Stat
}

func (k *Work) LookAtTasks(ctx context.Context, j job.Job) engine.Event {
	// The list's changes are compared with what was there.
	if st := j.Spec.Step(j.Step); st != nil && j.Attempt != nil {
		if _, err := k.Folders.BegunAgain(ctx, j, st); ctx.Err() != nil {
			return nil
		} else if err != nil {
			k.Logf("%s: %v", j.Key, err)
		}
	}
	var got *taskFile
	err := k.Persist(ctx, j.Key, func() (err error) {
		got, err = k.taskFile(j.Tasks.Path)
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		got = &taskFile{stamp: "unread " + err.Error(), invalid: j.Tasks.Path + ": " + fault.WithoutPath(err).Error()}
	}
	return k.tasksSeen(j, got)
}

// tasksSeen returns the event for the file. An invalid file is kept as it is: whoever fixes it may
// write it anew, with less in it.
func (k *Work) tasksSeen(j job.Job, f *taskFile) engine.Event {
	ev := engine.TasksSeen{Run: j.Run, Step: j.Step, N: j.N, Key: j.Key, Stamp: f.stamp,
		Missing: f.stamp == stampMissing, Invalid: f.invalid, Tasks: f.seenBy(j)}
	if f.bad != nil {
		aside := k.JobDir(j) + "/" + filepath.Base(j.Tasks.Path) + invalidEnding
		if err := k.WriteFile(aside, f.bad); err != nil {
			k.Logf("%s: %s is not kept: %v", j.Key, j.Tasks.Path, err)
		} else {
			ev.Invalid += " (as it was: " + aside + ")"
		}
	}
	return ev
}

// invalidEnding ends the name of an invalid task file, kept in the folder of the list's attempt.
const invalidEnding = ".invalid"

// seenBy returns the tasks as the run must see them: for a real run, what stand-ins have done is
// not done.
func (f *taskFile) seenBy(j job.Job) []engine.TaskSeen {
	stubbed := f.stubbed
	if len(j.RunInfo.Stubs) > 0 {
		stubbed = nil
	}
	if len(stubbed) == 0 && len(f.gone) == 0 {
		return f.seen
	}
	seen := slices.Clone(f.seen)
	for _, i := range stubbed {
		seen[i].Status = engine.TaskTodo
	}
	for _, id := range slices.Sorted(maps.Keys(f.gone)) {
		seen = append(seen, engine.TaskSeen{ID: id, Body: f.gone[id], Gone: true})
	}
	return seen
}

// remember keeps the tasks of the version before that this one lacks.
func (f *taskFile) remember(old *taskFile) {
	if old == nil {
		return
	}
	f.gone = map[string]json.RawMessage{}
	if len(old.gone) < tasks.MaxTasks {
		maps.Copy(f.gone, old.gone)
	}
	if old.file != nil {
		for _, t := range old.file.Tasks {
			f.gone[t.ID] = t.Body
		}
	}
	if f.file != nil {
		for _, t := range f.file.Tasks {
			delete(f.gone, t.ID)
		}
	}
}

// taskFile reads the task file if it has changed since the last read.
func (k *Work) taskFile(rel string) (*taskFile, error) {
	path, err := k.Below(rel)
	if err != nil {
		return nil, err
	}
	dir, name := filepath.Split(path)
	st, err := atomicfile.Lstat(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &taskFile{stamp: stampMissing}, nil
	}
	if err != nil {
		return nil, err
	}
	k.listMu.Lock()
	old := k.lists[path]
	k.listMu.Unlock()
	if old != nil && old.stamp == stampOf(st) {
		return old, nil
	}
	data, st, err := atomicfile.OpenRegular(dir, name, tasks.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return &taskFile{stamp: stampMissing}, nil
	}
	f := &taskFile{stamp: stampOf(st), stat: st}
	switch {
	case errors.Is(err, atomicfile.ErrTooLarge):
		f.invalid = fmt.Sprintf("%s: the file has more than %d MiB", rel, tasks.MaxBytes>>20)
	case errors.Is(err, atomicfile.ErrNotRegular):
		f.invalid = rel + ": not a regular file: a task file is one, and no link"
	case err != nil:
		return nil, err
	case len(strings.TrimSpace(string(data))) == 0:
		return &taskFile{stamp: stampMissing}, nil
	default:
		f.read(rel, data)
	}
	f.remember(old)
	k.listMu.Lock()
	defer k.listMu.Unlock()
	if len(k.lists) >= maxLists {
		clear(k.lists)
	}
	k.lists[path] = f
	return f, nil
}

const maxLists = 50 // remembered task files

func (f *taskFile) read(rel string, data []byte) {
	file, fault := tasks.Read(data)
	if fault != nil {
		f.invalid, f.bad = fmt.Sprintf("%s:%d: %s", rel, fault.Line, fault.Why), data
		return
	}
	size := 0
	for _, t := range file.Tasks {
		title := t.Title
		if len(title) > maxShownTitle {
			title = strings.ToValidUTF8(title[:maxShownTitle], "")
		}
		x := engine.TaskSeen{ID: t.ID, Title: title, Priority: t.Priority, Status: t.Status, DependsOn: t.DependsOn,
			For: t.StandsFor, Body: t.Body}
		if x.For != "" && !there(file.Tasks, x.For) {
			x.For = ""
		}
		size += len(x.ID) + len(title) + perTask
		for _, d := range t.DependsOn {
			size += len(d) + 3
		}
		if t.Stubbed && t.Status == engine.TaskDone {
			f.stubbed = append(f.stubbed, len(f.seen))
		}
		f.seen = append(f.seen, x)
	}
	f.file = file
	if size > engine.MaxTaskList {
		f.file, f.seen, f.stubbed = nil, nil, nil
		f.invalid = fmt.Sprintf("%s: what is kept of its tasks takes more than %d MiB: split the list", rel,
			engine.MaxTaskList>>20)
	}
}

const (
	maxShownTitle = 200
	perTask       = 80 // bytes that a task takes beside its texts
)

func there(ts []tasks.Task, id string) bool {
	return slices.ContainsFunc(ts, func(t tasks.Task) bool { return t.ID == id })
}

func stampOf(st atomicfile.Stat) string {
	return fmt.Sprintf("%d-%d-%d-%d-%d-%o", st.Dev, st.Ino, st.Size, st.ModTime.UnixNano(), st.Changed.UnixNano(),
		uint32(st.Mode))
}

// SaveTasks writes the statuses into the task file, unless the file has changed since it was last
// taken in: then it returns the new contents.
func (k *Work) SaveTasks(ctx context.Context, j job.Job) engine.Event {
	ev := engine.TasksSaved{Run: j.Run, Step: j.Step, N: j.N, Key: j.Key}
	if len(j.Tasks.Make) > 0 {
		if ev.Why = k.makeTasks(ctx, j); ctx.Err() != nil {
			return nil
		}
		return ev
	}
	var other *taskFile
	err := k.Persist(ctx, j.Key, func() error {
		f, err := k.taskFile(j.Tasks.Path)
		if err != nil {
			return err
		}
		if f.stamp != j.Tasks.Seen || f.file == nil {
			other = f
			return nil
		}
		if ev.Stamp, err = k.rewrite(j, f); errors.Is(err, atomicfile.ErrChanged) {
			other, err = k.taskFile(j.Tasks.Path)
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		ev.Why = k.unwritten(j, err)
	case other != nil:
		return k.tasksSeen(j, other)
	}
	return ev
}

// rewrite puts the changes into the file, by rename; atomicfile.ErrChanged if the file has changed.
func (k *Work) rewrite(j job.Job, f *taskFile) (string, error) {
	changes := make([]tasks.Change, 0, len(j.Tasks.Changes))
	for _, c := range j.Tasks.Changes {
		if c.Body == nil {
			c.Body = f.gone[c.ID]
		}
		changes = append(changes, tasks.Change(c))
	}
	data, changed := f.file.With(changes, k.Now())
	if !changed {
		return f.stamp, nil
	}
	if len(data) > tasks.MaxBytes { // it would be too long to read
		return "", fmt.Errorf("with what is to be said of its tasks it would have more than %d MiB: split the list",
			tasks.MaxBytes>>20)
	}
	path, err := k.Below(j.Tasks.Path)
	if err != nil {
		return "", err
	}
	var st atomicfile.Stat
	err = k.Folders.Alone(func() (err error) {
		st, err = atomicfile.Replace(path, data, f.stat.Mode.Perm(), f.stat)
		return err
	})
	if err != nil {
		return "", err
	}
	return stampOf(st), nil
}
