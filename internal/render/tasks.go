package render

import (
	"fmt"
	"regexp"
	"strings"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
)

func sayTasks(f engine.Fact) FactLine {
	switch f := f.(type) {
	case engine.ListBegan:
		s := FactLine{Text: "the tasks of " + f.Path, Key: true}
		if f.Keep {
			s.Text = "continues the tasks of " + f.Path
		}
		s.Text = Because(s.Text+addedWords(f.Added), f.Why)
		return s
	case engine.TasksLooked:
		return quiet("the task file is unchanged")
	case engine.TasksRead:
		return sayRead(f)
	case engine.TasksWriteOwed:
		return quiet("the task file will be written")
	case engine.TasksWritten:
		return quiet(Because("the task file was written", f.Why))
	case engine.TaskEnded:
		return sayTaskEnded(f)
	case engine.TaskLeft:
		return FactLine{Subject: f.Task, Text: "its hook has ended", Style: console.Dim}
	case engine.TasksAdded:
		return FactLine{Text: "the gate" + addedWords(f.Added), Key: true}
	case engine.ListSent:
		s := warns(Because("the list goes to "+f.To, f.Text))
		if f.Task != "" {
			s.Text = Because("the list goes to "+f.To+", as "+f.Task+" has used its tries", f.Text)
		}
		return s
	case engine.ListUnsent:
		return quiet("the step that the list went to is undone")
	case engine.ListSentBack:
		return quiet(Because("the list is sent back", f.Feedback))
	case engine.FeedbackTaken:
		return quiet("the list takes up the findings" + addedWords(f.Added))
	}
	return FactLine{}
}

// childName returns what follows the top run in a child run's id: its tasks and tries.
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

func sayRead(f engine.TasksRead) FactLine {
	switch f.File {
	case engine.FileMissing:
		return warns("the task file is missing")
	case engine.FileInvalid:
		return warns(Because("the task file is invalid", f.Why))
	}
	words := fmt.Sprintf("the task file was read: %s new or changed", text.Plural(len(f.Set), "task"))
	if n := len(f.Gone); n > 0 {
		words += fmt.Sprintf(", %d removed", n)
	}
	var refused []string
	for _, r := range f.Refused {
		refused = append(refused, r.Task+" ("+r.Status+")")
	}
	if len(refused) > 0 {
		return warns(words + "; not taken, as somebody was at work: " + strings.Join(refused, ", "))
	}
	return FactLine{Text: words}
}

func sayTaskEnded(f engine.TaskEnded) FactLine {
	s := FactLine{Subject: f.Task, Key: true, Text: "is " + f.State, Style: console.Green}
	switch f.State {
	case engine.TaskDone:
	case engine.TaskTodo:
		s.Text, s.Style = Because("will be tried again", f.Why), console.Yellow
	case engine.TaskSpent:
		s.Text, s.Style = Because("has used its tries", f.Why), console.Yellow
	default:
		s.Text, s.Style = Because(s.Text, f.Why), console.Red
	}
	s.Text += addedWords(f.Added)
	return s
}
