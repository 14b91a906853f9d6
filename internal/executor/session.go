package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"sluice/internal/job"
	"sluice/internal/layout"
)

// talk is the conversation of a launch.
type talk struct {
	name   string        // the spec's `session`; "" = it has none
	resume string        // goes on with this one; "" = a new one
	base   program.Usage // what that had cost before
}

// session is what is kept of a run's conversation, by its name and agent.
type session struct {
	ID    string        `json:"id"`
	Total program.Usage `json:"total"`          // that it has cost
	Held  string        `json:"held,omitempty"` // key of the launch that is at work in it
}

func (ls *Launches) sessionFile(run, name, agent string) string {
	return filepath.Join(ls.State, layout.AttemptsDir, layout.PathElement(run), sessionName(name, agent)+sessionEnding)
}

const (
	sessionEnding  = ".json"
	maxSessionFile = 255 // bytes of a file's name: file systems have no longer ones
)

// sessionName is what files and folders of a conversation bear. What cannot stand there as it is has a digest behind it:
// names that differ are conversations, and private homes, that do.
func sessionName(name, agent string) string {
	full := "session " + agent + " " + name
	file := layout.PathElement(full)
	if file == full && !strings.Contains(agent, " ") && len(file+sessionEnding) <= maxSessionFile {
		return file
	}
	sum := sha256.Sum256([]byte(agent + "\x00" + name))
	mark := "." + hex.EncodeToString(sum[:8])
	return atomicfile.CutName(file, len(mark+sessionEnding)) + mark
}

// conversation is the name of a launch's conversation; "" = it has none.
func conversation(name engine.Text, env *engine.Env) (string, error) {
	v, err := name.String(env)
	if err != nil {
		return "", job.Refused("session: %v", err)
	}
	return v, nil
}

// takeTalk gives the conversation in which a launch of the agent works, and holds it for the launch. One that another launch
// is at work in is not gone on with: two would write into one.
func (ls *Launches) takeTalk(run, name, key string, w who) talk {
	if name == "" || !talks(w) {
		return talk{}
	}
	ls.talks.Lock()
	defer ls.talks.Unlock()
	file := ls.sessionFile(run, name, w.name)
	var s session
	if err := layout.Load(file, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		ls.Cage.opt.Logf("%s: session %s: %v: a new conversation begins", key, name, err)
	}
	if s.Held != "" && s.Held != key {
		ls.Cage.opt.Logf("%s: session %s: %s is at work in this conversation: a new one, for this launch alone, begins", key, name, s.Held)
		return talk{}
	}
	s.Held = key
	if err := layout.Save(file, s); err != nil {
		ls.Cage.opt.Logf("%s: session %s: %v: a new conversation, for this launch alone, begins", key, name, err)
		return talk{}
	}
	if !program.CanResume(w.agent.Format, w.agent.Command[1:], s.ID) {
		return talk{name: name}
	}
	return talk{name: name, resume: s.ID, base: s.Total}
}

// talks says that the agent's program keeps conversations.
func talks(w who) bool { return !w.stub && program.Known(w.agent.Format) && len(w.agent.Command) > 0 }

// leaveTalk ends the hold that a launch has on its conversation, and keeps what the launch told of it; said is nil where it
// told nothing.
func (ls *Launches) leaveTalk(key string, said *program.Result, total program.Usage, gone bool) {
	own := ls.PIDFile(key) + programMark
	p, ok := readProgram(filepath.Dir(own), filepath.Base(own))
	if !ok || p.Session == "" {
		return
	}
	run, _, _ := strings.Cut(key, "/")
	file := ls.sessionFile(run, p.Session, p.Agent)
	ls.talks.Lock()
	defer ls.talks.Unlock()
	var s session
	if layout.Load(file, &s) != nil || s.Held != layout.FirstKey(key) {
		return // left before
	}
	switch {
	case gone:
		if err := os.Remove(file); err != nil {
			ls.Note(key, err.Error())
		}
		return
	case said != nil && said.Session != "":
		s.ID, s.Total = said.Session, total
	}
	s.Held = ""
	if err := layout.Save(file, s); err != nil {
		ls.Cage.opt.Logf("%s: session %s: %v", key, p.Session, err)
	}
}

// goOn gives the conversation in which an agent is asked again: the one it spoke in last, if it can be gone on with.
func (ls *Launches) goOn(j job.Job, name string, w who, last ended, can bool) talk {
	if !can {
		return talk{}
	}
	if name != "" {
		return ls.takeTalk(j.Run, name, j.Key, w)
	}
	if last.said == nil || !talks(w) || !program.CanResume(w.agent.Format, w.agent.Command[1:], last.said.Session) {
		return talk{}
	}
	return talk{resume: last.said.Session, base: last.total}
}

// asked is where the answer of a launch is looked for.
type asked struct{ key, dir string }

// again has an agent asked once more, for the try-th time; l is what is the same each time. start says what to start: in the
// conversation the agent spoke in, or, where that is gone, in a new one. The error is ctx's.
func (ls *Launches) again(ctx context.Context, l order, rel string, try int, start func(key, dir string, goOn bool) (process, error)) (ended, asked, error) {
	a := asked{layout.Correction(l.of, try), againDir(rel, try)}
	ask := func(goOn bool) (ended, error) {
		l.key, l.dir = a.key, a.dir
		return ls.ensure(ctx, l, func() (process, error) { return start(a.key, a.dir, goOn) })
	}
	end, err := ask(true)
	if err != nil || !end.gone {
		return end, a, err
	}
	ls.Cage.opt.Logf("%s: %s", a.key, end.exit.Why)
	a = asked{a.key + layout.Afresh, a.dir + "-new"}
	end, err = ask(false)
	return end, a, err
}

// goneTalk is how a launch counts that was to go on with a conversation that is not there: as nothing, and it is launched
// again at once, in a new one.
func goneTalk(p Program, now time.Time) engine.Exit {
	what := "its conversation"
	if p.Session != "" {
		what = "the conversation of session " + p.Session
	}
	return engine.Exit{Code: -1, Class: engine.ClassLimit, ResumeAt: now, Why: fmt.Sprintf("%s is gone (%s): a new one begins", what, p.Resume)}
}
