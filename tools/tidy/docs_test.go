package tidy

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/internal/settings"
	"sluice/specs"
)

// pages are what users read, by path below the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) < 9 {
		t.Fatalf("%d documents in docs/: %v", len(names), err)
	}
	more, _ := filepath.Glob("../../examples/*/README.md")
	templates, _ := filepath.Glob("../../docs/templates/*.md")
	names = append(append(append(names, more...), templates...), "../../README.md", "../../CONTRIBUTING.md", "../../examples/README.md")
	out := map[string]string{}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel("../..", name)
		out[filepath.ToSlash(rel)] = string(raw)
	}
	return out
}

// command is what the binary says of one of its commands.
type command struct {
	flags    []string
	commands []string // of a group
	also     []string // its other names
	alias    bool
}

// commands asks the binary for all of its commands, once.
func commands(t *testing.T) map[string]command {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "sluice")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "sluice/cmd/sluice")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // compiled already
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	help := func(path ...string) string {
		out, err := exec.Command(bin, append([]string{"help"}, path...)...).Output()
		if err != nil {
			t.Fatalf("sluice help %s: %v", strings.Join(path, " "), err)
		}
		return string(out)
	}
	entry := regexp.MustCompile(`(?m)^  ([a-z]+)  +\S`)
	flag := regexp.MustCompile(`(?m)^  (?:(-\w), )? *(--[a-z-]+)`)
	also := regexp.MustCompile(`(?m)^  Also called: (.*)$`)
	out := map[string]command{}
	var ask func(path ...string)
	ask = func(path ...string) {
		text := help(path...)
		var c command
		for _, m := range flag.FindAllStringSubmatch(text, -1) {
			c.flags = append(c.flags, m[1], m[2])
		}
		if len(path) == 0 || strings.Contains(text, "\nCommands\n") {
			list, _, _ := strings.Cut(text, "\nFlags")
			if len(path) > 0 {
				_, list, _ = strings.Cut(list, "\nCommands\n")
			} else {
				_, list, _ = strings.Cut(list, "\nBegin\n")
			}
			for _, m := range entry.FindAllStringSubmatch(list, -1) {
				c.commands = append(c.commands, m[1])
			}
		}
		c.flags = append(c.flags, "-h", "--help")
		if m := also.FindStringSubmatch(text); m != nil {
			c.also = strings.Split(m[1], ", ")
		}
		out[strings.Join(path, " ")] = c
		for _, sub := range c.commands {
			ask(append(slices.Clone(path), sub)...)
		}
	}
	ask()
	for path, c := range maps.Clone(out) {
		above := strings.TrimSpace(path[:max(strings.LastIndex(path, " "), 0)])
		for _, name := range c.also {
			group := out[above]
			group.commands = append(group.commands, name)
			out[above] = group
			c.alias = true
			out[strings.TrimSpace(above+" "+name)] = c
		}
	}
	return out
}

// codes returns what stands as code in a page: within the text, and in blocks with what opens the block before each line.
func codes(page string) (inline, block []string) {
	fence := ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		mark := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(mark, "```") && fence == "":
			fence = mark
		case strings.HasPrefix(mark, "```"):
			fence = ""
		case fence != "":
			block = append(block, fence+" "+line)
		case strings.HasPrefix(line, "    "):
			block = append(block, "```sh "+mark)
		default:
			for i, part := range strings.Split(line, "`") {
				if i%2 == 1 {
					inline = append(inline, part)
				}
			}
		}
	}
	return inline, block
}

// lines returns the command lines of a page. What a command says, in blocks of no language and with an arrow, is none.
func lines(page string) []string {
	inline, block := codes(page)
	var out []string
	for _, c := range inline {
		if !strings.Contains(c, "→") && !regexp.MustCompile(`^sluice[ a-z]*:|[a-z] sluice `).MatchString(c) {
			out = append(out, c)
		}
	}
	for _, c := range block {
		if sh, ok := strings.CutPrefix(c, "```sh "); ok {
			out = append(out, sh)
		}
	}
	return out
}

// TestDocsNameCommands: each `sluice …` in what users read is a command, with flags that it has.
func TestDocsNameCommands(t *testing.T) {
	all := commands(t)
	if len(all) < 30 || !slices.Contains(all["watch"].commands, "add") || !slices.Contains(all["run"].flags, "--var") || !slices.Contains(all["log"].flags, "-f") {
		t.Fatalf("the help is not read as it is written: %d commands, watch %+v, run %+v", len(all), all["watch"], all["run"])
	}
	seen := map[string]bool{}
	start := regexp.MustCompile(`(?:^|[\s/(<;&])sluice ([^|;&#<>()]*)`)
	for page, text := range pages(t) {
		for _, line := range lines(text) {
			for _, m := range start.FindAllStringSubmatch(line, -1) {
				words := strings.Fields(regexp.MustCompile(`"[^"]*"|'[^']*'`).ReplaceAllString(m[1], "WORDS"))
				path, fault := "", ""
				for len(words) > 0 && slices.Contains(all[path].commands, words[0]) {
					path, words = strings.TrimSpace(path+" "+words[0]), words[1:]
				}
				switch {
				case path == "" && len(words) > 0 && (words[0] == "help" || words[0] == "service"): // service is named as what is to come
					continue
				case path == "" && len(words) > 0 && !strings.HasPrefix(words[0], "-") && words[0] != "COMMAND" && words[0] != "…":
					fault = "no command " + words[0]
				case len(all[path].commands) > 0 && path != "" && len(words) > 0 && words[0] != "…":
					fault = "sluice " + path + " has no command " + words[0]
				}
				seen[path] = true
				for _, w := range words {
					name, _, _ := strings.Cut(w, "=")
					if strings.HasPrefix(name, "-") && len(name) > 1 && name != "--" && !slices.Contains(all[path].flags, name) && !slices.Contains(all[""].flags, name) {
						fault = "sluice " + path + " has no flag " + name
					}
				}
				if fault != "" {
					t.Errorf("%s: %q: %s", page, line, fault)
				}
			}
		}
	}
	for name, c := range all {
		if name != "" && !c.alias && len(c.commands) == 0 && !seen[name] && name != "completion" && name != "graph" && name != "config" {
			t.Errorf("docs never show `sluice %s`", name)
		}
	}
}

// TestDocsLinks: each relative link leads to a file, and its # to a heading.
func TestDocsLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			target, anchor, _ := strings.Cut(m[1], "#")
			file := filepath.Join("../..", filepath.Dir(page), target)
			if target == "" {
				file = filepath.Join("../..", page)
			}
			raw, err := os.ReadFile(file)
			if info, serr := os.Stat(file); serr != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			} else if anchor != "" && (err != nil || info.IsDir() || !slices.Contains(anchors(string(raw)), anchor)) {
				t.Errorf("%s: %s: no such heading", page, m[1])
			}
		}
	}
}

// TestPagesNameNoDocument: a user's page, its commands' help included, sends nobody to a design document by its number.
// The conformance's list quotes them, and says which.
func TestPagesNameNoDocument(t *testing.T) {
	number := regexp.MustCompile(`(?m)(?:^|[^0-9A-Za-z,.:-])00[0-9](?:[^0-9A-Za-z:]|$)|\b(?:[1-9]|1[0-3])-(?:language|files|engine|trust|cli|seeds|agents|semantics|one-tree|moves|house|page|forge|cluster)\b`)
	checked := 0
	for page, text := range pages(t) {
		if page == "docs/conformance.md" {
			if !number.MatchString(text) {
				t.Error("the list of the conformance has no document: is it looked for?")
			}
			continue
		}
		checked++
		for _, found := range number.FindAllString(text, -1) {
			t.Errorf("%s: %q", page, found)
		}
	}
	if checked < 30 {
		t.Errorf("%d pages", checked)
	}
}

// anchors are the names of a page's headings, as forges make them.
func anchors(page string) []string {
	var out []string
	left := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := left.ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}

// word reports whether a name stands in the page's code as a word of its own.
func word(page, name string) bool {
	inline, block := codes(page)
	is := regexp.MustCompile("(?:^|[^A-Za-z0-9_])" + regexp.QuoteMeta(name) + "(?:$|[^A-Za-z0-9_])")
	return slices.ContainsFunc(append(inline, block...), is.MatchString)
}

// TestSemanticsAreCited: each rule that a comment or a test cites as "8-semantics 21" is in docs/semantics.md, and so is each
// row of the conformance's list; every number of the page is in that list, in order.
func TestSemanticsAreCited(t *testing.T) {
	page, err := os.ReadFile("../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:\*\*(\d+a?)\.\*\* |\| (I\d+) \| )\S`).FindAllStringSubmatch(string(page), -1) {
		if known[m[1]+m[2]] {
			t.Errorf("docs/semantics.md has rule %s twice", m[1]+m[2])
		}
		known[m[1]+m[2]] = true
	}
	if len(known) != 38+13 {
		t.Errorf("docs/semantics.md has %d rules and invariants, want 38 and 13", len(known))
	}
	cite := regexp.MustCompile(`8-semantics ((?:(?:, | and |-)?(?:I?\d+a?))+)`)
	single := regexp.MustCompile(`I?\d+a?`)
	_, all := files(t)
	cited := 0
	for _, f := range all {
		for _, m := range cite.FindAllStringSubmatch(string(f.src), -1) {
			for _, rule := range single.FindAllString(m[1], -1) {
				cited++
				if !known[rule] {
					t.Errorf("%s cites rule %s, which docs/semantics.md does not have", f.path, rule)
				}
			}
		}
	}
	if cited < 100 {
		t.Errorf("only %d citations were found", cited)
	}
	list, err := os.ReadFile("../conform/rules/3_8-semantics.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(I?\d+a?) \| `).FindAllStringSubmatch(string(list), -1) {
		if !known[m[1]] {
			t.Errorf("conformance lists rule %s, which docs/semantics.md does not have", m[1])
		}
	}
}

// TestDocsNameEveryKey: every key of the settings and of the language is in the document that is about them.
func TestDocsNameEveryKey(t *testing.T) {
	all := pages(t)
	raw, err := json.Marshal(settings.Default())
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string]any
	if err := json.Unmarshal(raw, &settings); err != nil {
		t.Fatal(err)
	}
	settingsKeys := map[string]bool{}
	keysOf(settings, "", settingsKeys)
	var schema any
	if err := json.Unmarshal(specs.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	languageKeys := map[string]bool{}
	properties(schema, languageKeys)
	if len(settingsKeys) < 25 || len(languageKeys) < 60 {
		t.Fatalf("%d keys of the settings, %d of the language", len(settingsKeys), len(languageKeys))
	}
	for page, keys := range map[string]map[string]bool{"docs/settings.md": settingsKeys, "docs/language.md": languageKeys} {
		for k := range keys {
			if !word(all[page], k) {
				t.Errorf("%s does not name the key %s", page, k)
			}
		}
	}
}

// keysOf gathers the keys of the settings. The names of agents and roles are anybody's.
func keysOf(m map[string]any, under string, out map[string]bool) {
	for k, v := range m {
		sub, nested := v.(map[string]any)
		if under != "agents" && under != "roles" {
			out[k] = true
		}
		if nested {
			keysOf(sub, k, out)
		}
	}
}

// properties gathers the names of all properties of a JSON Schema.
func properties(v any, out map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, sub := range v {
			if named, ok := sub.(map[string]any); ok && k == "properties" {
				for name, s := range named {
					out[name] = true
					properties(s, out)
				}
				continue
			}
			properties(sub, out)
		}
	case []any:
		for _, s := range v {
			properties(s, out)
		}
	}
}

// TestMapNamesEveryPackage: a newcomer finds each package in CONTRIBUTING.md by its path.
func TestMapNamesEveryPackage(t *testing.T) {
	_, all := files(t)
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range all {
		if !seen[f.pkg] && !strings.Contains(string(text), "`"+f.pkg+"`") {
			t.Errorf("CONTRIBUTING.md does not name %s", f.pkg)
		}
		seen[f.pkg] = true
	}
}
