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
		s := FactLine{Step: f.Step, n: f.N, Text: "the tasks of " + f.Path, Key: true}
		if f.Keep {
			s.Text = "continues the tasks of " + f.Path
		}
		s.Text = Because(s.Text+addedWords(f.Added), f.Why)
		return s
	case engine.TasksLooked:
		return FactLine{Step: f.Step, Text: "the task file is unchanged", Style: console.Dim}
	case engine.TasksRead:
		return sayRead(f)
	case engine.TasksWriteOwed:
		return FactLine{Step: f.Step, Text: "the task file will be written", Style: console.Dim}
	case engine.TasksWritten:
		return FactLine{Step: f.Step, Text: Because("the task file was written", f.Why), Style: console.Dim}
	case engine.TaskEnded:
		return sayTaskEnded(f)
	case engine.TaskLeft:
		return FactLine{Step: f.Step, Subject: f.Task, Text: "its hook has ended", Style: console.Dim}
	case engine.TasksAdded:
		return FactLine{Gate: f.Gate, Text: "the gate" + addedWords(f.Added), Key: true}
	case engine.ListSent:
		s := FactLine{Step: f.Step, n: f.N, Style: console.Yellow, Key: true, Text: Because("the list goes to "+f.To, f.Text)}
		if f.Task != "" {
			s.Text = Because("the list goes to "+f.To+", as "+f.Task+" has used its tries", f.Text)
		}
		return s
	case engine.ListUnsent:
		return FactLine{Text: "the step that the list went to is undone", Style: console.Dim}
	case engine.ListSentBack:
		return FactLine{Gate: f.Gate, Text: Because("the list is sent back", f.Feedback), Style: console.Dim}
	case engine.FeedbackTaken:
		return FactLine{Text: "the list takes up the findings" + addedWords(f.Added), Style: console.Dim}
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
	s := FactLine{Step: f.Step,
		Text: fmt.Sprintf("the task file was read: %s new or changed", text.Plural(len(f.Set), "task"))}
	if n := len(f.Gone); n > 0 {
		s.Text += fmt.Sprintf(", %d removed", n)
	}
	switch {
	case f.File == engine.FileMissing:
		s.Text, s.Style, s.Key = "the task file is missing", console.Yellow, true
	case f.File == engine.FileInvalid:
		s.Text, s.Style, s.Key = Because("the task file is invalid", f.Why), console.Yellow, true
	case len(f.Refused) > 0:
		var ids []string
		for _, r := range f.Refused {
			ids = append(ids, r.Task+" ("+r.Status+")")
		}
		s.Text, s.Style, s.Key = s.Text+"; not taken, as somebody was at work: "+strings.Join(ids, ", "), console.Yellow, true
	}
	return s
}

func sayTaskEnded(f engine.TaskEnded) FactLine {
	s := FactLine{Step: f.Step, Subject: f.Task, Key: true, Text: "is " + f.State, Style: console.Green}
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
