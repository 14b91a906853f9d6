package main

import (
	"fmt"
	"regexp"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
)

// sayTasks is of what happens to a list's tasks.
func sayTasks(f engine.Fact) (said, bool) {
	switch f := f.(type) {
	case engine.ListBegan:
		s := said{step: f.Step, subject: attempt(f.Step, f.N), text: "the tasks of " + f.Path, key: true}
		if f.Keep {
			s.text = "goes on with the tasks of " + f.Path
		}
		s.text = because(s.text+addedWords(f.Added), f.Why)
		return s, true
	case engine.TasksLooked:
		return said{step: f.Step, text: "the task file is as it was", style: console.Dim}, true
	case engine.TasksRead:
		return sayRead(f), true
	case engine.TasksWriteOwed:
		return said{step: f.Step, text: "the task file is to be written", style: console.Dim}, true
	case engine.TasksWritten:
		return said{step: f.Step, text: because("the task file was written", f.Why), style: console.Dim}, true
	case engine.TaskEnded:
		return sayTaskEnded(f), true
	case engine.TaskLeft:
		return said{step: f.Step, subject: f.Task, text: "its hook has ended", style: console.Dim}, true
	case engine.TasksAdded:
		return said{gate: f.Gate, subject: f.Gate, text: "the gate" + addedWords(f.Added), key: true}, true
	case engine.ListSent:
		s := said{step: f.Step, subject: attempt(f.Step, f.N), style: console.Yellow, key: true, text: because("the list goes to "+f.To, f.Text)}
		if f.Task != "" {
			s.text = because("the list goes to "+f.To+", as "+f.Task+" has used its tries", f.Text)
		}
		return s, true
	case engine.ListUnsent:
		return said{text: "where the list went is undone", style: console.Dim}, true
	case engine.ListSentBack:
		return said{gate: f.Gate, subject: f.Gate, text: because("the list is sent back", f.Feedback), style: console.Dim}, true
	case engine.FeedbackTaken:
		return said{text: "the list takes up what was found" + addedWords(f.Added), style: console.Dim}, true
	}
	return said{}, false
}

// childName is what of a child run's id comes after its top run's: the tasks and tries that lead to it.
func childName(run string) string {
	if i := strings.LastIndexAny(run, ".-"); i < 0 || run[i] == '-' {
		return ""
	}
	at := regexp.MustCompile(`-[0-9]+\.`).FindStringIndex(run)
	if at == nil {
		return ""
	}
	return run[at[1]:]
}

func addedWords(added []engine.Task) string {
	var ids []string
	for _, t := range added {
		ids = append(ids, t.ID)
	}
	if len(ids) == 0 {
		return ""
	}
	return ", new: " + strings.Join(ids, ", ")
}

func sayRead(f engine.TasksRead) said {
	s := said{step: f.Step, text: fmt.Sprintf("the task file was read: %s new or changed", plural(len(f.Set), "task"))}
	if n := len(f.Gone); n > 0 {
		s.text += fmt.Sprintf(", %d taken out", n)
	}
	switch {
	case f.File == engine.FileMissing:
		s.text, s.style, s.key = "the task file is missing", console.Yellow, true
	case f.File == engine.FileInvalid:
		s.text, s.style, s.key = because("the task file cannot be gone by", f.Why), console.Yellow, true
	case len(f.Refused) > 0:
		var ids []string
		for _, r := range f.Refused {
			ids = append(ids, r.Task+" ("+r.Status+")")
		}
		s.text, s.style, s.key = s.text+"; not taken, as somebody was at work: "+strings.Join(ids, ", "), console.Yellow, true
	}
	return s
}

func sayTaskEnded(f engine.TaskEnded) said {
	s := said{step: f.Step, subject: f.Task, key: true, text: "is " + f.State, style: console.Green}
	switch f.State {
	case engine.TaskDone:
	case engine.TaskTodo:
		s.text, s.style = because("is to be tried again", f.Why), console.Yellow
	case engine.TaskSpent:
		s.text, s.style = because("has used its tries", f.Why), console.Yellow
	default:
		s.text, s.style = because(s.text, f.Why), console.Red
	}
	s.text += addedWords(f.Added)
	return s
}

// listLines are how a step's tasks stand.
func (a *app) listLines(l *daemon.ListStatus) []string {
	if l == nil {
		return nil
	}
	head := fmt.Sprintf("%d of %s done", l.Done, plural(l.Total, "task"))
	if l.Failed > 0 {
		head += fmt.Sprintf(", %d failed", l.Failed)
	}
	if l.Blocked > 0 {
		head += fmt.Sprintf(", %d blocked", l.Blocked)
	}
	out := []string{"      " + a.Paint(console.Dim, clean(l.File)+": ") + head}
	if l.Fault != "" {
		out = append(out, "      "+a.Paint(console.Red, clean(l.Fault)))
	}
	left := 0
	for _, t := range l.Tasks {
		if t.State == engine.TaskDone {
			continue
		}
		if left++; left > tasksShown {
			continue
		}
		text := t.ID + " is " + t.State
		if t.Title != "" {
			text = t.ID + " (" + t.Title + ") is " + t.State
		}
		if t.Tries > 0 {
			text += fmt.Sprintf(", try %d", t.Tries+1)
		}
		if t.Run != "" {
			text += ": " + t.Run
		} else if t.Why != "" {
			text = because(text, t.Why)
		}
		out = append(out, "        "+clean(text))
	}
	if left > tasksShown {
		out = append(out, fmt.Sprintf("        and %d more", left-tasksShown))
	}
	return out
}

// tasksShown is how many tasks that are not done a status names.
const tasksShown = 20
