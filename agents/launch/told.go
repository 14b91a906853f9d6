package launch

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
)

// keepProgram writes what a launch's program is.
func (ls *Launches) keepProgram(rel, key string, w Who, t talk, env []string) error {
	err := Program{Agent: w.Name, Role: w.Role, Format: w.Agent.Format, Model: w.Set.Model,
		Args: w.Set.Args, Session: t.name, Resume: t.resume, Base: t.base,
		Env: homes(w.Agent.Format, env)}.write(ls, rel, key)
	if err != nil {
		return err
	}
	if program.Known(w.Agent.Format) && !w.Stub { // its output is the conversation
		if err := os.Symlink("stdout", filepath.Join(ls.Path(rel), sessionLink)); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			ls.Logf("%s: %v", key, err) // for people: nothing depends on it
		}
	}
	return nil
}

// write writes the agent.json of a launch twice: for people, and for Told where the agent cannot
// change it.
func (p Program) write(ls *Launches, rel, key string) error {
	if err := layout.Save(ls.PIDFile(key)+programMark, p); err != nil {
		return err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return ls.WriteFile(rel+"/"+programFile, append(data, '\n'))
}

// sessionLink leads to a launch's output if that is JSON lines.
const sessionLink = "session.jsonl"

// Told adds what an agent's program reported to its end: exit code 0 alone is no success.
func (ls *Launches) Told(key string, end Ended) Ended {
	if end.Dir == "" {
		return end
	}
	p, ok := programOf(ls.Layout, key)
	if !ok || !program.Known(p.Format) {
		return end
	}
	// "Try again in 3 hours" counts from when it was said, not from when it is read.
	when := ls.opt.Now()
	f, st, err := atomicfile.Open(end.Dir, "stdout")
	if err == nil && st.ModTime.Before(when) {
		when = st.ModTime
	}
	r := program.NewReader(p.Format, func() time.Time { return when })
	if err == nil {
		_, err = io.Copy(r, io.LimitReader(f, MaxStream))
		err = errors.Join(err, f.Close())
	}
	r.Take([]byte("\n")) // the last line may lack its end
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		ls.Logf("%s: the agent's output cannot be read to its end: %v", ls.Shown(end.Dir), err)
	}
	result := r.Result()
	end.Said = &result
	x := &end.Exit
	used, total := result.Since(p.Base)
	end.total = total
	x.Usage = UsageOf(used)
	end.gone = p.Resume != "" && result.Gone(stderrOf(end.Dir))
	ls.leaveTalk(key, p, result.Session, total, end.gone)
	if end.gone && !x.Stopped {
		end.Exit = goneTalk(p, ls.opt.Now())
		return end
	}
	if x.Stopped || x.Lost || x.Signal != "" || x.NotStarted != "" || x.Refused != "" {
		return end // that says more
	}
	class, why, reset := result.Class(x.Code, stderrOf(end.Dir))
	x.Class, x.Why, x.ResumeAt = string(class), why, reset
	return end
}

// maxStderr is how much of an agent's standard error is read, in bytes.
const maxStderr = 8 << 10

func stderrOf(dir string) string { return fileEnd(dir, "stderr", maxStderr) }

// exitOf converts a process's end for the engine.
func (ls *Launches) exitOf(x agents.Exit, key string) engine.Exit {
	out := engine.Exit{Code: x.Code, Signal: x.Signal, Stopped: x.Stopped, Lost: x.Lost, NotStarted: x.NotStarted}
	if name := signalOf(x.Code); name != "" && layout.IsDir(ls.PIDFile(key)+layout.InboxMark) {
		out.Code, out.Signal = -1, name // a sandbox exits with 128 plus the signal of its process
	}
	if x.Stopped {
		marked(&out, ls.PIDFile(key))
	}
	ls.forgive(&out, x.Started, x.Ended)
	if x.NoCommand {
		out.Class, out.Why = engine.ClassFatal, x.NotStarted
	}
	return out
}

// marked adds what the marks beside a pid file say of why its process was ended.
func marked(out *engine.Exit, pidFile string) {
	for _, mark := range []string{layout.IdleMark, dayMark, roomMark} {
		if _, err := os.Lstat(pidFile + mark); err == nil {
			endedFor(out, mark, markOf(pidFile, mark))
		}
	}
}

// endedFor adds why a process was ended, as a mark and its text say; a full disk has no room for a text.
func endedFor(out *engine.Exit, mark, text string) {
	switch text = strings.TrimSpace(text); {
	case mark == layout.IdleMark:
		out.Idle = true
	case text == "":
	case mark == dayMark:
		*out = waitsForDay(*out, text, "the day's budget is used up")
	case mark == roomMark:
		out.Class, out.Why = engine.ClassWork, text
	}
}

// maxMark limits what a mark contains, in bytes.
const maxMark = 1 << 10

// markOf returns what a mark beside a pid file contains; "" = there is none.
func markOf(pidFile, mark string) string {
	data, err := atomicfile.Read(pidFile+mark, maxMark)
	if err != nil {
		return ""
	}
	return string(data)
}

// endingMost is how long the machine may take to shut down. It stops processes in no order: an
// agent may exit by itself before its host is asked.
const endingMost = 5 * time.Minute

// forgive makes a launch not count that was lost, ended by a signal or failed while the service or
// the machine was stopped on purpose.
func (ls *Launches) forgive(x *engine.Exit, began, over time.Time) {
	fine := x.Code == 0 && x.Signal == "" && !x.Lost && !x.Stopped
	if ls.opt.PutDown == nil || x.Class != "" || fine {
		return
	}
	at, now := ls.opt.PutDown(), ls.opt.Now()
	// From before the clock was set back: every loss until then would not count.
	if began.IsZero() || at.After(now) {
		return
	}
	meanwhile := x.Code != 0 && over.Before(at.Add(endingMost))
	if began.Before(at) && (x.Lost || over.After(at) && (x.Signal != "" || x.Stopped || meanwhile)) {
		x.Class, x.ResumeAt, x.Why = engine.ClassLimit, now, "it was ended with the service, or with the machine, on purpose"
	}
}

// signalOf returns the signal of a sandbox's exit code; "" for any other code. The numbers are
// those that signal(7) gives for x86 and ARM.
func signalOf(code int) string {
	return map[int]string{3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
		11: "SIGSEGV", 15: "SIGTERM"}[code-128]
}
