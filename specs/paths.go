package specs

import (
	"errors"
	"path"
	"strings"

	"sluice/engine"
	"sluice/internal/layout"
)

// badPath returns why a path or glob may leave the repo, or "".
func badPath(p string) string {
	switch {
	case strings.TrimSpace(p) == "":
		return "is empty"
	case strings.ContainsRune(p, 0):
		return "holds a NUL character"
	case strings.ContainsAny(p, "\n\r"):
		return "holds a line break"
	case strings.HasPrefix(p, "/"), len(p) > 1 && p[1] == ':':
		return "is absolute: write it relative to the repo's root"
	case strings.Contains(p, `\`):
		return `holds a \: write / between folders`
	case strings.HasPrefix(p, "~"):
		return "begins with ~: write it relative to the repo's root"
	}
	for e := range strings.SplitSeq(p, "/") {
		if e == ".." {
			return "leaves the repo: .. is not taken"
		}
		if strings.EqualFold(e, ".git") {
			return "is in .git, which belongs to git"
		}
	}
	if _, err := path.Match(p, ""); errors.Is(err, path.ErrBadPattern) {
		return "is not a glob: a [ is not closed"
	}
	return ""
}

// path compiles a path that may contain expressions.
func (c *values) path(t scalar, s scope, what string, check func(string) string) engine.Text {
	if !t.set() {
		return engine.Text{}
	}
	parts, why := split(t.value)
	if why == "" {
		sample := ""
		for _, p := range parts {
			if sample += p.words; p.value {
				sample += "x"
			}
		}
		if bad := check(sample); bad != "" {
			c.at(t.node, "%s %s %s", what, quote(t.value), bad)
			return engine.Text{Source: t.value}
		}
	}
	return c.text(t, s, what, check)
}

func (c *values) paths(l pathList, s scope, what string) (out []engine.Text) {
	for _, t := range l.items {
		out = append(out, c.path(t, s, what, badPath))
	}
	return out
}

// fixedPath compiles a path that is fixed when the run starts.
func (c *values) fixedPath(t scalar, what string) string {
	v, ok := c.bound(t, what)
	if !ok {
		return t.value
	}
	if bad := badPath(v); bad != "" {
		c.at(t.node, "%s %s %s", what, quote(v), bad)
	}
	return v
}

func (c *values) fixedPaths(l pathList, what string) (out []string) {
	for _, t := range l.items {
		out = append(out, c.fixedPath(t, what))
	}
	return out
}

// badOutput is badPath for files that the engine writes: they must not speak for someone else.
func badOutput(p string) string {
	if bad := badPath(p); bad != "" {
		return bad
	}
	if own := layout.Reserved(p); own != "" {
		return "is in " + own + ", where agents' values are never written"
	}
	if clean := path.Clean(p); strings.EqualFold(clean, layout.WorkflowDir) || clean == "." {
		return "is a folder"
	}
	return ""
}
