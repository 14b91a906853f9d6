package specs

import (
	"path"
	"strings"

	"sluice/engine"
	"sluice/internal/layout"
)

// maxProvided bounds what a setup provides: each is a mount in every launch of a judge.
const maxProvided = 20

// setup compiles `setup:`; nil if there is none.
func (c *stepRows) setup(d *setupDoc, what string) *engine.Setup {
	if d == nil {
		return nil
	}
	s := &engine.Setup{Files: c.fixedPaths(d.Files, what+": files"), Provides: c.fixedPaths(d.Provides, what+": provides")}
	if run := c.judge(d.Run, inStep, what+": run"); run != nil {
		s.Run = *run
	}
	for key, list := range map[string]pathList{"files": d.Files, "provides": d.Provides} {
		if list.node != nil && len(list.items) == 0 {
			c.at(list.node, "%s: %s is empty: name what it needs and what it makes", what, key)
		}
	}
	if n := len(s.Provides); n > maxProvided {
		c.at(d.key("provides"), "%s: provides %d paths, more than %d: name the folder that they lie in", what, n, maxProvided)
	}
	for i, p := range s.Provides {
		first, _, _ := strings.Cut(strings.ToLower(path.Clean(p)), "/")
		switch {
		case first == "." || first == ".git" || first == layout.WorkflowDir:
			c.at(d.Provides.items[i].node,
				"%s: provides %s: it is not a setup's to make: name a folder such as node_modules", what, quote(p))
		case strings.ContainsAny(p, "*?["):
			c.at(d.Provides.items[i].node, "%s: provides %s: no glob: name the folder or file itself", what, quote(p))
		}
	}
	return s
}
