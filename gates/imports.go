package gates

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Instructs reports whether an agent's program may read further files because a file of this name says so.
func Instructs(file string) bool {
	switch path.Base(file) {
	case "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md", opencodeFile, opencodeFile + "c":
		return true
	}
	return strings.Contains("/"+file, "/.claude/rules/") && path.Ext(file) == ".md"
}

const opencodeFile = "opencode.json"

// Imports returns the files, and globs, that the text of a file has the program read: `@docs/rules.md` in a CLAUDE.md
// and in what that imports, `instructions` of an opencode.json. They are named as from where the file is named.
func Imports(file, text string) (out []string) {
	found := regexp.MustCompile(`(?:^|\s)@((?:[^\s\\]|\\ )+)`).FindAllStringSubmatch(text, -1)
	if strings.HasPrefix(path.Base(file), opencodeFile) {
		lists := regexp.MustCompile(`"instructions"\s*:\s*\[[^\]]*`).FindAllString(text, -1)
		found = regexp.MustCompile(`"([^"]+)"\s*(?:,|$)`).FindAllStringSubmatch(strings.Join(lists, ","), -1)
	}
	for _, m := range found {
		name, _, _ := strings.Cut(strings.ReplaceAll(m[1], `\ `, " "), "#")
		if name == "" || strings.HasPrefix(name, "~") || strings.Contains(name, "://") {
			continue
		}
		if !path.IsAbs(name) {
			name = path.Join(path.Dir(file), name)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Read adds to the law the files, and globs, that Imports has found.
func (l *Law) Read(files []string) {
	for _, f := range files {
		if fixed(f) == f {
			l.settings.add(l.at, []string{f})
		} else {
			l.addRules(f)
		}
	}
}
