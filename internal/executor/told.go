package executor

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
)

// programFile lies beside a launch's output and says by which program it was made: the settings may have changed since.
const programFile = "agent.json"

// Program is what a launch's agent.json says.
type Program struct {
	Agent  string `json:"agent"`
	Role   string `json:"role"`
	Format string `json:"format"`
	Model  string `json:"model,omitempty"`
}

// keepProgram writes the agent.json of a launch.
func (e *Executor) keepProgram(rel string, w who) error {
	data, err := json.Marshal(Program{Agent: w.name, Role: w.role, Format: w.agent.Format, Model: w.set.Model})
	if err != nil {
		return err
	}
	return e.file(rel+"/"+programFile, append(data, '\n'))
}

// ReadProgram reads the agent.json in the folder of a launch; false where the launch was none of an agent, or is of a
// release that wrote none.
func ReadProgram(dir string) (Program, bool) {
	var p Program
	data, _, err := atomicfile.OpenRegular(dir, programFile, 64<<10)
	return p, err == nil && json.Unmarshal(data, &p) == nil
}

// told adds to the end of an agent's process what its program told of it: an exit code of 0 alone is no success.
func (e *Executor) told(end ended) ended {
	if end.dir == "" {
		return end
	}
	p, ok := ReadProgram(end.dir)
	if !ok || !program.Known(p.Format) {
		return end
	}
	r := program.NewReader(p.Format, e.opt.Now)
	f, _, err := atomicfile.Open(end.dir, "stdout")
	if err == nil {
		err = errors.Join(r.Read(f), f.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.opt.Logf("%s: the agent's output cannot be read to its end: %v", e.shown(end.dir), err)
	}
	result := r.Result()
	end.said = &result
	x := &end.exit
	x.Usage = engine.Usage{Tokens: result.Usage.Input + result.Usage.Output, CostUSD: result.Usage.CostUSD}
	if x.Stopped || x.Lost || x.Signal != "" || x.NotStarted != "" || x.Refused != "" {
		return end // that says more
	}
	class, why, reset := result.Class(x.Code, stderrOf(end.dir))
	x.Class, x.Why, x.ResumeAt = string(class), why, reset
	return end
}

// maxStderr is how much of what an agent complained is looked at.
const maxStderr = 8 << 10

// stderrOf is the end of what a launch wrote to its standard error.
func stderrOf(dir string) string { return fileEnd(dir, "stderr", maxStderr) }

// fileEnd is the end of a file of a launch.
func fileEnd(dir, name string, most int64) string {
	f, st, err := atomicfile.Open(dir, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	data := make([]byte, min(st.Size, most))
	n, _ := f.ReadAt(data, st.Size-int64(len(data))) // what was read counts
	return strings.ToValidUTF8(string(data[:n]), "\uFFFD")
}

// needs is what a launch asks of its agent's program beside the prompt.
type needs struct {
	dirs   []string
	schema json.RawMessage
}

// needsOf are the needs of a launch whose files lie in rel: it writes its answer there, its signal into the inbox, and what
// it commits into the repo's git folder, which is not below a worktree.
func (e *Executor) needsOf(rel string, schema *engine.Schema) needs {
	n := needs{dirs: []string{filepath.Join(e.root, filepath.FromSlash(rel)), e.inbox}}
	if e.opt.Git != nil {
		n.dirs = append(n.dirs, e.opt.Git.CommonDir())
	}
	if schema != nil {
		n.schema = json.RawMessage(schema.Source)
	}
	return n
}
