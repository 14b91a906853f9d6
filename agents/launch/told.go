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
	"sluice/engine"
	"sluice/internal/atomicfile"
)

// keepProgram writes the agent.json of a launch: for people, and, where the agent cannot change by what it is judged, for
// told.
func (ls *Launches) keepProgram(rel, key string, w Who, t Talk, env []string) error {
	data, err := json.Marshal(Program{Agent: w.Name, Role: w.Role, Format: w.Agent.Format, Model: w.Set.Model, Args: w.Set.Args, Session: t.name, Resume: t.Resume, Base: t.base,
		Env: homes(w.Agent.Format, env)})
	if err != nil {
		return err
	}
	data = append(data, '\n')
	own := ls.PIDFile(key) + programMark
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(own, data, 0o600); err != nil {
		return err
	}
	if err := ls.WriteFile(rel+"/"+programFile, data); err != nil {
		return err
	}
	if program.Known(w.Agent.Format) && !w.Stub { // its output is the record of the conversation, an event a line
		if err := os.Symlink("stdout", filepath.Join(ls.Root, filepath.FromSlash(rel), sessionLink)); err != nil && !errors.Is(err, fs.ErrExist) {
			ls.Cage.opt.Logf("%s: %v", key, err) // for people: nothing goes by it
		}
	}
	return nil
}

// sessionLink leads to a launch's output, where that is JSON lines.
const sessionLink = "session.jsonl"

// Told adds to the end of an agent's process what its program told of it: an exit code of 0 alone is no success.
func (ls *Launches) Told(key string, end Ended) Ended {
	if end.Dir == "" {
		return end
	}
	p, ok := programOf(ls.Layout, key)
	if !ok || !program.Known(p.Format) {
		return end
	}
	// "Try again in 3 hours" counts from when it was said, and not from when somebody reads it.
	when := ls.opt.Now()
	f, st, err := atomicfile.Open(end.Dir, "stdout")
	if err == nil && st.ModTime.Before(when) {
		when = st.ModTime
	}
	r := program.NewReader(p.Format, func() time.Time { return when })
	if err == nil {
		err = errors.Join(r.Read(io.LimitReader(f, MaxStream)), f.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		ls.Cage.opt.Logf("%s: the agent's output cannot be read to its end: %v", ls.Shown(end.Dir), err)
	}
	result := r.Result()
	end.Said = &result
	x := &end.Exit
	used, total := result.Since(p.Base)
	end.total = total
	x.Usage = UsageOf(used)
	end.gone = p.Resume != "" && result.Gone(stderrOf(end.Dir))
	ls.LeaveTalk(key, &result, total, end.gone)
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

// stderrOf returns the end of a launch's standard error.
func stderrOf(dir string) string { return fileEnd(dir, "stderr", maxStderr) }

// Needs is what a launch asks of its agent's program beside the prompt.
type Needs struct {
	Dirs   []string
	Schema json.RawMessage
	Nulls  bool    // what need not be in the answer may be null in it
	rel    string  // below the root: the folder of its files
	judges bool    // it has nothing to change
	cost   float64 // what it may cost; 0 = no bound
	Talk   Talk
}

// NeedsOf are the needs of a launch whose files lie in rel: it writes its answer there; who does the work also its signal
// into the inbox, and what it commits into the repo's git folder, which is not below a worktree.
func (ls *Launches) NeedsOf(rel string, schema *engine.Schema, judges bool, cost float64) Needs {
	n := Needs{rel: rel, Dirs: []string{filepath.Join(ls.Root, filepath.FromSlash(rel))}, judges: judges, cost: cost}
	if judges {
		return n
	}
	n.Dirs = append(n.Dirs, ls.Signals())
	if ls.Cage.opt.Git.Checkout() {
		n.Dirs = append(n.Dirs, ls.Cage.opt.Git.CommonDir())
	}
	if schema != nil {
		n.Schema = json.RawMessage(schema.Source)
	}
	return n
}
