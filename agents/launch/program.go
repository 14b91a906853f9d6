package launch

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"sluice/agents/program"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
)

// programFile is beside a launch's output and names its program: the settings may have changed
// since.
const programFile = "agent.json"

// Program is the contents of a launch's agent.json.
type Program struct {
	Agent  string   `json:"agent"`
	Role   string   `json:"role"`
	Format string   `json:"format"`
	Model  string   `json:"model,omitempty"`
	Args   []string `json:"args,omitempty"`
	// The conversation: its name in the spec, the continued one, and its cost before.
	Session string        `json:"session,omitempty"`
	Resume  string        `json:"resume,omitempty"`
	Base    program.Usage `json:"base,omitzero"`

	// Env says where its conversations are, if the settings' environment does.
	Env map[string]string `json:"env,omitempty"`
}

// programMark ends the name of sluice's own agent.json, after that of a pid file.
const programMark = ".agent"

// ReadProgram reads the agent.json in a launch's folder, for people. It returns false for a launch
// without an agent, or of a release that wrote none.
func ReadProgram(dir string) (Program, bool) { return readProgram(filepath.Join(dir, programFile)) }

// programOf reads sluice's own record, which the agent cannot change.
func programOf(l layout.Layout, key string) (Program, bool) {
	return readProgram(l.PIDFile(key) + programMark)
}

func readProgram(file string) (p Program, ok bool) {
	data, err := atomicfile.Read(file, 64<<10)
	ok = err == nil && json.Unmarshal(data, &p) == nil
	return p, ok
}

func homes(format string, env []string) map[string]string {
	var out map[string]string
	for name := range program.Homes(format) {
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				if out == nil {
					out = map[string]string{}
				}
				out[name] = value
			}
		}
	}
	return out
}
