package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
)

type talk struct {
	name   string        // the spec's `session`; "" = none
	resume string        // continues this one; "" = a new one
	base   program.Usage // its cost before
}

// Session is the record of a run's conversation, by its name and agent.
type Session struct {
	ID    string        `json:"id"`
	Total program.Usage `json:"total"`          // its whole cost
	Held  string        `json:"held,omitempty"` // key of the launch that works in it
}

// SessionFile returns the file of a run's conversation, by its name and agent.
func SessionFile(state, run, name, agent string) string {
	return filepath.Join(state, layout.AttemptsDir, layout.PathElement(run), sessionName(name, agent)+sessionEnding)
}

const (
	sessionEnding  = ".json"
	maxSessionFile = 255 // bytes of a file's name: the limit of file systems
)

// sessionName names the files and folders of a conversation. A name that cannot be used as it is
// gets a digest: different names are different conversations.
func sessionName(name, agent string) string {
	full := "session " + agent + " " + name
	file := layout.PathElement(full)
	if file == full && !strings.Contains(agent, " ") && len(file+sessionEnding) <= maxSessionFile {
		return file
	}
	mark := "." + layout.HexSum([]byte(agent + "\x00" + name))[:16]
	return atomicfile.CutName(file, len(mark+sessionEnding)) + mark
}

// takeTalk returns the conversation for an agent's launch and holds it for the launch. If another
// launch holds it, a new one begins: two must not write into one.
func (ls *Launches) takeTalk(run, name, key string, w Who) talk {
	if name == "" || !talks(w) {
		return talk{}
	}
	ls.talks.Lock()
	defer ls.talks.Unlock()
	file := SessionFile(ls.State, run, name, w.Name)
	var s Session
	if err := layout.Load(file, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		ls.Logf("%s: session %s: %v: a new conversation begins", key, name, err)
	}
	if s.Held != "" && s.Held != key {
		ls.Logf("%s: session %s: %s is at work in this conversation: a new one, for this launch alone, begins",
			key, name, s.Held)
		return talk{}
	}
	s.Held = key
	if err := layout.Save(file, s); err != nil {
		ls.Logf("%s: session %s: %v: a new conversation, for this launch alone, begins", key, name, err)
		return talk{}
	}
	if !program.CanResume(w.Agent.Format, w.Agent.Command[1:], s.ID) {
		return talk{name: name}
	}
	return talk{name: name, resume: s.ID, base: s.Total}
}

// talks reports whether the agent's program keeps conversations.
func talks(w Who) bool { return !w.Stub && program.Known(w.Agent.Format) && len(w.Agent.Command) > 0 }

// LeaveTalk releases the conversation of a launch, unless its report about it has done so.
func (ls *Launches) LeaveTalk(key string) {
	if p, ok := programOf(ls.Layout, key); ok {
		ls.leaveTalk(key, p, "", program.Usage{}, false)
	}
}

// leaveTalk releases a launch's conversation and saves what the launch reported about it: its ID, if it
// has one, and its whole cost. gone: it is missing.
func (ls *Launches) leaveTalk(key string, p Program, id string, total program.Usage, gone bool) {
	if p.Session == "" {
		return
	}
	run, _, _ := strings.Cut(key, "/")
	file := SessionFile(ls.State, run, p.Session, p.Agent)
	ls.talks.Lock()
	defer ls.talks.Unlock()
	var s Session
	if layout.Load(file, &s) != nil || s.Held != layout.FirstKey(key) {
		return // left before
	}
	switch {
	case gone:
		if err := os.Remove(file); err != nil {
			ls.Note(key, err.Error())
		}
		return
	case id != "":
		s.ID, s.Total = id, total
	}
	s.Held = ""
	if err := layout.Save(file, s); err != nil {
		ls.Logf("%s: session %s: %v", key, p.Session, err)
	}
}

// goneTalk returns the end of a launch whose conversation is missing: it counts as nothing, and is
// launched again at once, in a new one.
func goneTalk(p Program, now time.Time) engine.Exit {
	what := "its conversation"
	if p.Session != "" {
		what = "the conversation of session " + p.Session
	}
	return engine.Exit{Code: -1, Class: engine.ClassLimit, ResumeAt: now,
		Why: fmt.Sprintf("%s is gone (%s): a new one begins", what, p.Resume)}
}
