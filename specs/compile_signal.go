package specs

import (
	"fmt"
	"path"
	"strings"

	"sluice/engine"
	"sluice/internal/layout"
)

const maxMarkerBytes = 200

// badBranch returns why git would refuse a branch name or take it for something else.
func badBranch(b string) string {
	if b == "" || strings.HasPrefix(b, "-") || strings.HasPrefix(b, "/") || strings.HasSuffix(b, "/") ||
		strings.HasSuffix(b, ".lock") || strings.HasSuffix(b, ".") || strings.Contains(b, "..") ||
		strings.Contains(b, "@{") || strings.Contains(b, "//") || strings.ContainsAny(b, " ~^:?*[\\\t\n\x7f") || b == "@" {
		return "is not a branch name"
	}
	return ""
}

// signal checks how the step reports that it is done, and fills in defaults.
func (c *stepRows) signal(d *stepDoc, s *engine.Step, what string) engine.Signal {
	launched := s.Run != nil || s.Agent == nil || s.Agent.Launch == engine.LaunchHeadless
	sig := engine.Signal{Type: engine.SignalFile}
	if launched {
		sig.Type = engine.SignalExit
	}
	what += ": signal"
	var value scalar
	if d.Signal != nil {
		if d.Signal.Type.set() {
			sig.Type = d.Signal.Type.value
		}
		value = d.Signal.Value
	}
	if sig.Type == engine.SignalExit && !launched {
		c.at(d.Signal.Type.node,
			"%s: stdout_exit needs a process that the daemon launches, and this step is only offered (launch: %s): take "+
				"sentinel_file", what, s.Agent.Launch)
	}
	if value.set() && strings.Contains(value.value, "${{") {
		c.at(value.node, "%s: value holds ${{ }}: a signal's value is a fixed text", what)
		return sig
	}
	switch sig.Type {
	case engine.SignalFile:
		sig.Value = layout.SignalsDir + "/" + s.ID + "-done.json"
		if value.set() {
			sig.Value = path.Clean(value.value)
			if bad := badSentinel(value.value); bad != "" {
				c.at(value.node, "%s: value %s %s", what, quote(value.value), bad)
			}
		}
	case engine.SignalCommit:
		gate := s.ID
		if d.Gate.set() {
			gate = d.Gate.value
		}
		sig.Value = fmt.Sprintf("[GATE:%s]", gate)
		if value.set() {
			sig.Value = value.value
			if v := value.value; strings.TrimSpace(v) != v || v == "" || len(v) > maxMarkerBytes ||
				strings.ContainsAny(v, "\n\r\t") {
				c.at(value.node, "%s: value %s is not a marker: one line of at most %d bytes, no space around it", what,
					quote(v), maxMarkerBytes)
			}
		}
	case engine.SignalPull:
		if sig.Value = value.value; value.set() && badBranch(value.value) != "" {
			c.at(value.node, "%s: value %s %s: say the one that the pull request comes from", what, quote(value.value),
				badBranch(value.value))
		}
	case engine.SignalExit:
		if value.set() && value.value != "0" && d.Signal.Type.set() {
			c.at(value.node, "%s: value %s: exit code 0 says done, and every other one failed", what, quote(value.value))
		}
	}
	return sig
}

func badSentinel(v string) string {
	name, ok := strings.CutPrefix(v, layout.SignalsDir+"/")
	switch {
	case !ok && !strings.ContainsAny(v, `/\`):
		return "is not in " + layout.SignalsDir + "/: write " + layout.SignalsDir + "/" + v
	case !ok || strings.ContainsAny(name, `/\`):
		return "is not directly in " + layout.SignalsDir + "/"
	case strings.HasPrefix(name, "."):
		return "begins with a dot: dotfiles are never read"
	case name == "" || name == "rejected":
		return "is not a file name there"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(name) > 200:
		return "is not a file name"
	}
	return ""
}
