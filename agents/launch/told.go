package launch

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice/agents/program"
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
