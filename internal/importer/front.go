package importer

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/internal/layout"
)

// front is what the two formats share that are Markdown with front matter: one agent, its prompt the
// Markdown.
func (r *reader) front(d document, of string) *flow {
	name := cmp.Or(str(get(d.root, "name")), d.stem())
	f := &flow{id: r.ids.id(strings.ToLower(name)), name: name, description: str(get(d.root, "description")),
		workspace: "run"}
	r.flows = append(r.flows, f)
	f.notes = append(f.notes, "imported from "+path.Base(d.file)+" ("+of+"). Where this "+
		"spec says less than the original, or something else, a comment says so.")
	return f
}

// body adds the Markdown as a construct; line is where it begins.
func (r *reader) body(d document, step string, m mark, notes *[]string) {
	key := quoted("body")
	key.Line = 1
	r.origin[key] = d.file
	r.add(key, "(the Markdown)", step, m, notes)
}

// shellFile writes a shell text as a script file and returns the command that runs it; why says why
// it is not run.
func (r *reader) shellFile(f *flow, name, text, with string, outside map[string]bool, ref refs) (command string,
	got script) {
	got = fit(text, outside, ref)
	file := path.Join(layout.WorkflowDir, "scripts", f.id, slug(name, 60)+".sh")
	if got.why != "" {
		file += ".txt" // nothing to run by accident
		r.plan.put(file, []byte(text))
		return file, got
	}
	r.plan.put(file, []byte(strings.TrimRight(got.text, "\n")+"\n"))
	if !slices.Contains(f.protect, ".workflow/scripts/"+f.id+"/**") {
		f.protect = append(f.protect, ".workflow/scripts/"+f.id+"/**")
	}
	return "exec " + with + ` "${SLUICE_FILES%/.workflow/runs/*}/` + file + `"`, got
}

func noRefs(string) (string, int) { return "", 0 }

// minutes and milliseconds read a number as a duration of ours; "" = none that is of use.
func minutes(n *yaml.Node) string      { return scaled(n, 60) }
func milliseconds(n *yaml.Node) string { return scaled(n, 0.001) }
func seconds(n *yaml.Node) string      { return scaled(n, 1) }

func scaled(n *yaml.Node, by float64) string {
	v, err := strconv.ParseFloat(str(n), 64)
	if n == nil || err != nil || v*by < 1 || v*by > 30*24*3600 {
		return ""
	}
	return duration(v * by)
}

// fill puts the expression of each match of a pattern, whose first group is a reference, in its
// place. of returns "" for a reference that stays as it is.
func fill(s string, pattern *regexp.Regexp, of func(ref string) string) string {
	var b strings.Builder
	for {
		m := pattern.FindStringSubmatchIndex(s)
		if m == nil {
			return b.String() + literal(s)
		}
		b.WriteString(literal(s[:m[0]]))
		if expr := of(s[m[2]:m[3]]); expr != "" {
			b.WriteString("${{" + expr + "}}")
		} else {
			b.WriteString(literal(s[m[0]:m[1]]))
		}
		s = s[m[1]:]
	}
}
