package launch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
)

// AgentsLog is the file, in a run's folder, with what its agents and its child runs' said and did:
// a JSON line each.
const AgentsLog = "agents.jsonl"

const (
	speechMost = 64 << 20 // bytes of a file; the rest is only in the launch's output
	speechRuns = 50       // runs whose files are remembered
)

// Types of lines, from document 001.
const (
	saidMessage = "message"
	saidTool    = "tool_use"
	saidCommand = "command"
	saidError   = "error"
	saidSummary = "summary"
)

type Said struct {
	Type      string            `json:"type"`
	Timestamp time.Time         `json:"timestamp"` // when it was read
	Role      string            `json:"role,omitempty"`
	Content   string            `json:"content,omitempty"`
	Name      string            `json:"name,omitempty"`
	Input     map[string]string `json:"input,omitempty"`
	Command   string            `json:"command,omitempty"`
	Error     string            `json:"error,omitempty"`
	Status    string            `json:"status,omitempty"`
	Summary   string            `json:"summary,omitempty"`
	NewTasks  json.RawMessage   `json:"new_tasks,omitempty"`
	Launch    string            `json:"launch"` // the launch's key
	N         int               `json:"n"`      // its number among the lines of the launch
}

// Log writes these files. It reads back how far each launch was written: a stream that is read
// again after a crash adds only what is missing. Safe for concurrent use.
type Log struct {
	layout layout.Layout
	logf   func(string, ...any)
	now    func() time.Time

	mu   sync.Mutex
	runs map[string]*spoken // by the file's path
}

// newLog returns the log of a repo's runs. Write errors go to logf and stop nothing.
func newLog(l layout.Layout, logf func(string, ...any), now func() time.Time) *Log {
	return &Log{layout: l, logf: logf, now: now}
}

type spoken struct {
	size   int64
	n      map[string]int  // launch -> its last line
	summed map[string]bool // launches with a summary
}

// LineOf returns the line of an agent's event.
func LineOf(e program.Event) (Said, bool) {
	s := Said{Name: e.Name}
	switch e.Kind {
	case program.Text:
		return Said{Type: saidMessage, Role: "assistant", Content: e.Text}, true
	case program.Tool:
		if e.Of == "command" {
			return Said{Type: saidCommand, Command: e.Text}, true
		}
		if s.Type = saidTool; e.Text != "" {
			s.Input = map[string]string{cmp.Or(e.Of, "text"): e.Text}
		}
		return s, true
	case program.File:
		s.Type, s.Input = saidTool, map[string]string{"file_path": e.Text}
		return s, true
	case program.Failed, program.Retry, program.Limit:
		s.Type, s.Error = saidError, cmp.Or(e.Text, string(e.Kind))
		return s, true
	case program.Denied:
		s.Type, s.Error = saidError, "not allowed: "+e.Text
		return s, true
	}
	return s, false // its start and end: the summary covers them
}

// Sum writes the last line of a step's launch: its result.
func (g *Log) Sum(key string, ev *engine.ProcessEnded) {
	s := Said{Type: saidSummary, Launch: key, Status: engine.StatusDone, Error: ev.AnswerBad}
	if ev.Exit.Code != 0 || ev.Exit.Class != "" || ev.Exit.Signal != "" {
		s.Status, s.Error = engine.StatusFailed, cmp.Or(ev.AnswerBad, ev.Exit.Why, ev.Exit.NotStarted, ev.Exit.Refused)
	}
	var answer struct {
		Status   string          `json:"status"`
		Summary  string          `json:"summary"`
		NewTasks json.RawMessage `json:"new_tasks"`
	}
	if json.Unmarshal(ev.Answer, &answer) == nil {
		s.Status, s.Summary, s.NewTasks = cmp.Or(answer.Status, s.Status), answer.Summary, answer.NewTasks
	}
	g.Say(key, []Said{s})
}

// Say appends what a launch said to the file of its run.
func (g *Log) Say(key string, lines []Said) {
	if len(lines) == 0 {
		return
	}
	run, _, _ := strings.Cut(key, "/")
	top, _, _ := strings.Cut(strings.TrimPrefix(g.layout.RunDir(run), layout.RunsDir+"/"), "/")
	path, err := g.layout.Below(layout.RunsDir + "/" + top + "/" + AgentsLog)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.runs[path]
	if f == nil {
		if f, err = openSpoken(path); err != nil {
			g.logf("%s: %v", path, err)
			return
		}
		if g.runs == nil || len(g.runs) >= speechRuns {
			g.runs = map[string]*spoken{}
		}
		g.runs[path] = f
	}
	if err := f.add(path, key, lines, g.now()); err != nil {
		delete(g.runs, path) // it is read again first
		g.logf("%s: %v", path, err)
	}
}

// openSpoken reads the file and cuts off a torn line.
func openSpoken(path string) (*spoken, error) {
	s := &spoken{n: map[string]int{}, summed: map[string]bool{}}
	dir, name := filepath.Split(path)
	data, _, err := atomicfile.OpenRegular(dir, name, speechMost+speechMost/4)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if len(whole) < len(data) {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(f.Truncate(int64(len(whole))), f.Close()); err != nil {
			return nil, err
		}
	}
	s.size = int64(len(whole))
	for line := range bytes.Lines(whole) {
		var l Said
		if json.Unmarshal(line, &l) == nil {
			s.n[l.Launch] = max(s.n[l.Launch], l.N)
			s.summed[l.Launch] = s.summed[l.Launch] || l.Type == saidSummary
		}
	}
	return s, nil
}

// add appends the lines that the file lacks.
func (s *spoken) add(path, key string, lines []Said, now time.Time) error {
	var out []byte
	for _, l := range lines {
		if l.Type == saidSummary {
			if s.summed[key] {
				continue
			}
			l.N = s.n[key] + 1
		}
		if l.N <= s.n[key] || s.size > speechMost {
			continue
		}
		if l.Launch, l.Timestamp = key, now.UTC(); s.size+int64(len(out)) > speechMost {
			l = Said{Type: saidError, Error: "this file is full: what comes now is in the launches' own stdout", Launch: key,
				N: l.N, Timestamp: l.Timestamp}
		}
		data, err := json.Marshal(l)
		if err != nil {
			return err
		}
		out = append(append(out, data...), '\n')
		s.n[key], s.summed[key] = l.N, s.summed[key] || l.Type == saidSummary
		if s.size+int64(len(out)) > speechMost && l.Type == saidError {
			break
		}
	}
	if len(out) == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	n, err := f.Write(out)
	s.size += int64(n)
	return errors.Join(err, f.Close())
}
