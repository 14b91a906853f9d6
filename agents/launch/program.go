package launch

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"sluice/agents/program"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
)

// programFile is beside a launch's output and names the program that made it: the settings may have changed since.
const programFile = "agent.json"

// Program is what a launch's agent.json says.
type Program struct {
	Agent  string `json:"agent"`
	Role   string `json:"role"`
	Format string `json:"format"`
	Model  string `json:"model,omitempty"`
	// Args are those that the role added to its command.
	Args []string `json:"args,omitempty"`
	// The conversation: its name in the spec, the one that is gone on with, and what that had cost before.
	Session string        `json:"session,omitempty"`
	Resume  string        `json:"resume,omitempty"`
	Base    program.Usage `json:"base,omitzero"`

	Env map[string]string `json:"env,omitempty"` // where it keeps its conversations, if the settings' environment says so
}

// programMark is behind the name of a pid file: our own agent.json.
const programMark = ".agent"

// ReadProgram reads the agent.json in the folder of a launch, for people; false where the launch was none of an agent, or
// is of a release that wrote none.
func ReadProgram(dir string) (Program, bool) { return readProgram(dir, programFile) }

// programOf reads our own record of it, which the agent cannot change.
func programOf(l layout.Layout, key string) (Program, bool) {
	own := l.PIDFile(key) + programMark
	return readProgram(filepath.Dir(own), filepath.Base(own))
}

func readProgram(dir, name string) (p Program, ok bool) {
	data, _, err := atomicfile.OpenRegular(dir, name, 64<<10)
	ok = err == nil && json.Unmarshal(data, &p) == nil
	return p, ok
}

// homes are the variables of a launch by which its program finds what it keeps.
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
