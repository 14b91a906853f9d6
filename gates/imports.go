package gates

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Instructs reports whether a file of this name can have an agent's program read or start other files.
func Instructs(file string) bool {
	switch path.Base(file) {
	case "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md":
		return true
	}
	return isSettings(file) || path.Ext(file) == ".md" && strings.Contains("/"+file, "/.claude/rules/")
}

const opencodeFile = "opencode.json"

// isSettings reports whether a file is the settings of an agent's program, with hooks and servers.
func isSettings(file string) bool {
	if ext := path.Ext(file); ext != ".json" && ext != ".jsonc" && ext != ".toml" { // nearly all of 500,000 files
		return false
	}
	base, in := path.Base(file), path.Base(path.Dir(file))
	return base == ".mcp.json" || base == opencodeFile || base == opencodeFile+"c" ||
		slices.Contains([]string{".claude", ".codex", ".gemini", ".qwen", ".opencode"}, in)
}

// Imports returns the files, and globs, that the text of a file has the program read or start: `@docs/rules.md` in a
// CLAUDE.md and in what that imports; what settings name, such as the script of a hook. Some words of settings are no
// files. All are named from where the file is named.
func Imports(file, text string) (out []string) {
	dir, names := path.Dir(file), []string{}
	if isSettings(file) {
		if names = words(text); strings.HasPrefix(path.Base(dir), ".") { // commands work where the folder is
			dir = path.Dir(dir)
		}
	} else {
		for _, m := range regexp.MustCompile(`(?:^|\s)@((?:[^\s\\]|\\ )+)`).FindAllStringSubmatch(text, -1) {
			name, _, _ := strings.Cut(strings.ReplaceAll(m[1], `\ `, " "), "#")
			names = append(names, name)
		}
	}
	for _, name := range names {
		if name == "" || strings.HasPrefix(name, "~") || strings.Contains(name, "://") {
			continue
		}
		if !path.IsAbs(name) {
			name = path.Join(dir, name)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// words returns the words of settings that may be files, without a variable for their folder, and the globs of
// `instructions`.
func words(settings string) (out []string) {
	texts := regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|'[^'\n]*'`)
	variable, file := regexp.MustCompile(`^\$\{?[A-Za-z_]+\}?/`), regexp.MustCompile(`^[\w./@+-]+$`)
	for _, s := range texts.FindAllString(settings, -1) {
		for _, w := range strings.Fields(strings.NewReplacer(`\"`, "", `"`, "", `'`, "").Replace(s)) {
			if w = variable.ReplaceAllString(w, ""); file.MatchString(w) {
				out = append(out, w)
			}
		}
	}
	for _, list := range regexp.MustCompile(`"instructions"\s*:\s*\[[^\]]*`).FindAllString(settings, -1) {
		for _, s := range texts.FindAllString(list, -1)[1:] {
			out = append(out, strings.Trim(s, `"`))
		}
	}
	return out
}

// Read adds to the law the files, and globs, that Imports has found, and why there may be more.
func (l *Law) Read(files []string, doubts ...string) {
	for _, why := range doubts {
		l.doubt(why)
	}
	for _, f := range files {
		if fixed(f) == f {
			l.settings.add(l.at, []string{f})
		} else {
			l.addRules(f)
		}
	}
}
