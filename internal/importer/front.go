package importer

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/internal/layout"
)

// body adds the Markdown as a construct of a step; odd says what of it is not evaluated, "" = nothing.
func (r *reader) body(d document, s *step, odd string) {
	m := mark{as: Taken}
	if odd != "" {
		m = mark{Approximated, odd}
	}
	key := quoted("body")
	key.Line = 1 + d.above
	r.origin[key] = d.file
	r.add(key, "(the Markdown)", s.id, m, &s.notes)
}

// shellFile writes a shell text as a script file and returns the command that runs it; why says why
// it is not run.
func (r *reader) shellFile(f *flow, name, text string, ref refs) (command string, got script) {
	got = fit(text, nil, ref)
	if got.why != "" {
		return r.unrun(f, slug(name, 60)+".sh", text), got
	}
	return r.runs(f, slug(name, 60)+".sh", "bash", got.text), got
}

// runs writes a script of the flow, which the flow protects, and returns the command that runs it.
func (r *reader) runs(f *flow, name, with, text string) string {
	dir := path.Join(layout.WorkflowDir, "scripts", f.id)
	file := path.Join(dir, name)
	f.protect = []string{dir + "/**"}
	r.plan.put(file, []byte(strings.TrimRight(text, "\n")+"\n"))
	return "exec " + with + ` "${SLUICE_FILES%/.workflow/runs/*}/` + file + `"`
}

// unrun writes a script that is not run, so that nobody runs it by accident, and returns its path.
func (r *reader) unrun(f *flow, name, text string) string {
	file := path.Join(layout.WorkflowDir, "scripts", f.id, name+".txt")
	r.plan.put(file, []byte(text))
	return file
}

// oneLine is a text of the original in one line of a text of ours.
func oneLine(n *yaml.Node) string { return literal(strings.Join(strings.Fields(str(n)), " ")) }

// envName reports whether a spec may set an environment variable of the name.
func envName(s string) bool {
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	return name.MatchString(s) && !strings.HasPrefix(strings.ToUpper(s), "SLUICE_")
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

// fill puts ours in the place of each reference, a match of the pattern, for which of returns ok.
func fill(s string, pattern *regexp.Regexp, of func(m []string) (ours string, ok bool)) string {
	between := pattern.Split(s, -1)
	out := literal(between[0])
	for i, m := range pattern.FindAllStringSubmatch(s, -1) {
		ours, ok := of(m)
		if !ok {
			ours = literal(m[0])
		}
		out += ours + literal(between[i+1])
	}
	return out
}

// glossary says what the references in a prompt file are in this run; of is that of fill.
func glossary(words string, pattern *regexp.Regexp, of func(m []string) (ours string, ok bool)) string {
	var lines []string
	for _, m := range pattern.FindAllStringSubmatch(words, -1) {
		ours, ok := of(m)
		line := fmt.Sprintf("\n`%s`:\n%s\n", strings.ReplaceAll(m[0], "`", "'"), ours)
		if ok && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "\nIn that file,\n" + strings.Join(lines, "")
}
