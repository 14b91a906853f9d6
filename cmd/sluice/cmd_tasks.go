package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/tasks"
	"sluice/internal/text"
	"sluice/internal/workflows"
)

// Commands that take specs, or list runs, also take task files, whose names end in .json.

func isTaskFile(arg string) bool { return strings.EqualFold(filepath.Ext(arg), ".json") }

// taskFilesOf separates named task files from specs.
func taskFilesOf(args []string) (files, specs []string) {
	for _, arg := range args {
		if isTaskFile(arg) {
			files = append(files, arg)
		} else {
			specs = append(specs, arg)
		}
	}
	return files, specs
}

// taskFileRead reads a task file. bad is its fault; err means that it cannot be read.
func taskFileRead(a *app, arg string) (src []byte, st atomicfile.Stat, file *tasks.File, bad *tasks.Fault, err error) {
	path := a.below(arg)
	src, st, err = atomicfile.OpenRegular(filepath.Dir(path), filepath.Base(path), tasks.MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fault.Failed("its path is relative to the current folder", "%s: no such file", clean(arg))
	case errors.Is(err, atomicfile.ErrNotRegular):
		err = fault.Failed("a task file must be a regular file, not a link", "%s: not a regular file", clean(arg))
	case errors.Is(err, atomicfile.ErrTooLarge):
		err = fault.Failed("split the list", "%s: more than %d MiB", clean(arg), tasks.MaxBytes>>20)
	case err == nil:
		file, bad = tasks.Read(src)
	}
	return src, st, file, bad, err
}

// validTasks checks task files for validate: the first fault of each, with its line.
func validTasks(a *app, files []string) (out []workflows.Line, err error) {
	for _, f := range files {
		_, _, file, bad, err := taskFileRead(a, f)
		if err != nil {
			return nil, err
		}
		if bad != nil {
			out = append(out, workflows.Line{File: layout.ShortPath(a.below(f)), Line: bad.Line, Col: 1, Message: bad.Why})
			continue
		}
		if !a.JSON {
			a.Print("%s %s: %s", a.Paint(console.Green, "ok"), layout.ShortPath(a.below(f)), countsOf(file.Tasks))
			slips := file.Slips(text.Nearest)
			for _, s := range slips[:min(len(slips), slipsShown)] {
				a.Note("%s:%d: %s", layout.ShortPath(a.below(f)), s.Line, clean(s.Why))
			}
		}
	}
	return out, nil
}

// slipsShown is how many likely slips of a task file validate reports.
const slipsShown = 10

// taskStatuses returns the statuses of tasks in the order of listing.
func taskStatuses() []string {
	return []string{engine.TaskDoing, engine.TaskTodo, engine.TaskBlocked, engine.TaskDone}
}

// countsOf counts the tasks of each status.
func countsOf(all []tasks.Task) string {
	n := map[string]int{}
	for _, t := range all {
		n[t.Status]++
	}
	s := plural(len(all), "task")
	for _, status := range taskStatuses() {
		if n[status] > 0 {
			s += fmt.Sprintf(", %d %s", n[status], status)
		}
	}
	return s
}

type listedTask struct {
	ID       string   `json:"id"`
	Title    string   `json:"title,omitempty"`
	Status   string   `json:"status"`
	Stubbed  bool     `json:"stubbed,omitempty"` // stubs have done it
	Priority *int     `json:"priority,omitempty"`
	Waits    []string `json:"waits_for,omitempty"` // unfinished tasks that it depends on
	Blockers []string `json:"blockers,omitempty"`  // what blocks it, by its agent's word
}

// listTasks lists the tasks of a file by status, then in the order of selection.
func listTasks(a *app, arg, status string) error {
	if status != "" && !slices.Contains(taskStatuses(), status) {
		return fault.Misused("as "+strings.Join(taskStatuses(), ", "), "--status %s: not a status of a task", clean(status))
	}
	_, _, file, bad, err := taskFileRead(a, arg)
	if err != nil {
		return err
	}
	if bad != nil {
		return fault.Failed("fix it: `sluice validate "+clean(arg)+"` checks it again", "%s:%d: %s", clean(arg), bad.Line,
			clean(bad.Why))
	}
	list := tasksListed(file.Tasks)
	if status != "" {
		list = slices.DeleteFunc(list, func(t listedTask) bool { return t.Status != status })
	}
	if a.JSON {
		return a.Document(map[string]any{"file": arg, "tasks": list})
	}
	t := &console.Table{Columns: []console.Column{{}, {Most: 30}, {}, {Fit: console.Cut}, {Fit: console.Below}}}
	for _, x := range list {
		prio, waits := "", ""
		if x.Priority != nil {
			prio = fmt.Sprint(*x.Priority)
		}
		if len(x.Waits) > 0 && x.Status != engine.TaskDone {
			waits = "waits for " + strings.Join(x.Waits, ", ")
		}
		if len(x.Blockers) > 0 && x.Status == engine.TaskBlocked {
			waits = strings.TrimPrefix(waits+"; blocked: "+strings.Join(x.Blockers, "; "), "; ")
		}
		t.Row(
			console.Styled(x.Status+render.StubMark(x.Stubbed && x.Status == engine.TaskDone), console.Plain),
			console.Styled(x.ID, console.Bold),
			console.Styled(prio, console.Dim),
			console.Styled(clean(x.Title), console.Plain),
			console.Styled(clean(waits), console.Dim))
	}
	a.PrintTable(t)
	a.Print("%s", countsOf(file.Tasks))
	return nil
}

// tasksListed sorts tasks by status, then in the order of selection; one that depends on others
// keeps its place.
func tasksListed(all []tasks.Task) []listedTask {
	status := map[string]string{}
	for _, t := range all {
		status[t.ID] = t.Status
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(x, y tasks.Task) int {
		byPriority := 0
		if x.Status == engine.TaskTodo || x.Status == engine.TaskBlocked {
			byPriority = cmp.Compare(x.Priority, y.Priority)
		}
		return cmp.Or(cmp.Compare(slices.Index(taskStatuses(), x.Status), slices.Index(taskStatuses(), y.Status)),
			byPriority, ids.Compare(x.ID, y.ID))
	})
	out := []listedTask{}
	for _, t := range sorted {
		x := listedTask{ID: t.ID, Title: t.Title, Status: t.Status, Stubbed: t.Stubbed, Blockers: t.Blockers}
		if t.Priority != tasks.NoPriority {
			x.Priority = &t.Priority
		}
		for _, d := range t.DependsOn {
			if status[d] != engine.TaskDone {
				x.Waits = append(x.Waits, d)
			}
		}
		out = append(out, x)
	}
	return out
}

// formatGoes is how often a task file is formatted again because it changed meanwhile: a run may
// work on it.
const formatGoes = 20

// formatTasks formats a task file; it reports whether that differs. What a run writes meanwhile is
// not lost.
func formatTasks(a *app, arg string, check bool) (differs bool, err error) {
	for range formatGoes {
		src, st, _, bad, err := taskFileRead(a, arg)
		if err != nil {
			return false, err
		}
		if bad != nil {
			return false, fault.Failed("fix it first", "%s:%d: %s", clean(arg), bad.Line, clean(bad.Why))
		}
		out := tasks.Format(src)
		if out == nil {
			return false, fault.Failed("split the list",
				"%s: formatted, it would have more than %d MiB, and no run would read it", clean(arg), tasks.MaxBytes>>20)
		}
		if string(out) == string(src) {
			return false, nil
		}
		if !check {
			if _, err = atomicfile.Replace(a.below(arg), out, st.Mode.Perm(), st); errors.Is(err, atomicfile.ErrChanged) {
				continue
			}
			if err != nil {
				return true, err
			}
		}
		a.Print("%s", layout.ShortPath(a.below(arg)))
		return true, nil
	}
	return true, fault.Failed("try again when nothing writes to it", "%s: it keeps changing", clean(arg))
}

// specArgs returns the files for a command about specs: none if only task files were named.
func specArgs(a *app, cmd *cobra.Command, args, taskFiles []string) ([]string, error) {
	if len(args) == 0 && len(taskFiles) > 0 {
		return nil, nil
	}
	return specFiles(a, cmd, args)
}
