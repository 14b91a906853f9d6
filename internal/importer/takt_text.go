package importer

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// taktHole is a variable of takt in a prompt.
const taktHole = `\{(task|iteration|max_steps|step_iteration|previous_response|user_inputs|report_dir|review_scope|` +
	`cycle_count|report:[^{}\n]+|structured:[^{}\n]+|context:[^{}\n]+)\}`

const taktInclude = `(?m)^[ \t]*\{\{include:([a-z-]+)/([A-Za-z0-9_-]+)\}\}[ \t]*$`

// facetKinds are the folders of facets, and the section of a workflow that names files of each.
func facetKinds() map[string]string {
	return map[string]string{"personas": "personas", "policies": "policies", "knowledge": "knowledge",
		"instructions": "instructions", "output-contracts": "report_formats"}
}

// facet returns the text of a facet that n names; inline is set if n is the text itself. ok is false
// where there is none.
func (t *takt) facet(kind string, n *yaml.Node) (words string, inline, ok bool) {
	name := str(n)
	if strings.ContainsAny(name, "\n ") {
		return name, true, true
	}
	file := ""
	if p := str(at(t.doc.root, facetKinds()[kind], name)); p != "" {
		file = path.Join(path.Dir(t.doc.file), p)
	} else if strings.HasSuffix(name, ".md") {
		file = path.Join(path.Dir(t.doc.file), name)
	}
	for _, f := range t.src.find(path.Base(name) + ".md") {
		if file == "" && strings.HasSuffix("/"+f, "/"+kind+"/"+path.Base(name)+".md") && !strings.Contains(f, "partials/") {
			file = f
		}
	}
	if file == "" {
		return "", false, false
	}
	words, err := t.src.text(path.Clean(file))
	if err != nil {
		t.fail(n, "%s %q: %v", kind, name, err)
		return "", false, false
	}
	return t.partials(n, words, 0), false, true
}

// partials puts the texts of includes in.
func (r *reader) partials(n *yaml.Node, words string, depth int) string {
	return regexp.MustCompile(taktInclude).ReplaceAllStringFunc(words, func(m string) string {
		part := regexp.MustCompile(taktInclude).FindStringSubmatch(m)
		if depth > 8 || len(words) > maxPart {
			r.fail(n, "includes within one another, or a text of more than %d bytes", maxPart)
			return ""
		}
		for _, f := range r.src.find(part[2] + ".md") {
			if !strings.HasSuffix("/"+f, "/partials/"+part[1]+"/"+part[2]+".md") {
				continue
			}
			inner, err := r.src.text(f)
			if err != nil {
				r.fail(n, "include %s/%s: %v", part[1], part[2], err)
				return ""
			}
			return r.partials(n, strings.TrimRight(inner, "\n"), depth+1)
		}
		return m
	})
}

// facetFiles writes the facets that n names as prompt files, and returns their paths. What is not
// found is left.
func (t *takt) facetFiles(kind string, n *yaml.Node) (files []string) {
	for i, c := range items(n) {
		words, inline, ok := t.facet(kind, c)
		if !ok {
			t.leave(c, "no facet %q was found in this tree", str(c))
			if c != n {
				t.near(n, "no facet %q was found in this tree", str(c))
			}
			continue
		}
		name := kind + "-" + strings.TrimSuffix(path.Base(str(c)), ".md")
		if inline {
			name = fmt.Sprintf("%s-%s-%d", kind, t.flow.id, i+1)
		}
		files = append(files, t.prompt(t.top.flow, name, words))
	}
	return files
}

// hole is what stands for a variable of takt in the prompt of x.
func (t *takt) hole(name string, x *taktStep) (words string, ok bool) {
	kind, of, _ := strings.Cut(name, ":")
	switch kind {
	case "task":
		return "${{vars.task}}", true
	case "iteration", "step_iteration", "cycle_count":
		return "${{attempt}}", true
	case "max_steps":
		return fmt.Sprint(t.most), true
	case "previous_response":
		return t.previous(x), true
	case "user_inputs":
		return "(what a person says reaches you with the reason for which the work comes back)", true
	case "report_dir":
		return "$SLUICE_FILES", true
	case "review_scope":
		return "(the files that differ from where this run began: `git diff --name-only` against that commit)", true
	case "report":
		for _, y := range t.nodes {
			for _, r := range taktReports(y.n) {
				if r.name == of {
					return embed(answerOf(y.enter, r.field)), true
				}
			}
		}
		return "(the report " + of + ", if there is one: look in $SLUICE_FILES and in the reports of the calling run)", true
	case "structured":
		step, field, _ := strings.Cut(of, ".")
		if y := t.byName[step]; y != nil && field != "" && regexp.MustCompile(`^[\w.]+$`).MatchString(field) {
			return embed(answerOf(y.enter, strings.Split(field, ".")...)), true
		}
	case "context":
		return "(not known here: " + of + ")", true
	}
	return "", false
}

// previous is what the steps that lead to x said.
func (t *takt) previous(x *taktStep) string {
	var out []string
	for _, name := range x.sources {
		y := t.byName[name]
		if y == nil || len(out) > 3 || y.callee != nil {
			continue
		}
		for _, s := range y.said() {
			out = append(out, embed(s))
		}
	}
	return strings.Join(out, "\n")
}

// said are the expressions for what a step says to those who come next.
func (x *taktStep) said() (out []string) {
	if len(x.children) == 0 {
		return []string{answerOf(x.enter, "summary")}
	}
	for _, c := range x.children {
		if c.step != nil && c.step.workflow == "" {
			out = append(out, answerOf(c.step.id, "summary"))
		}
	}
	return out
}

// words puts ours in the place of takt's variables.
func (t *takt) words(s string, x *taktStep) string {
	return fill(s, regexp.MustCompile(taktHole), func(m []string) (string, bool) { return t.hole(m[1], x) })
}

// instruction is a step's task: an inline text, or a prompt file with what its variables are.
func (t *takt) instruction(n *yaml.Node, x *taktStep, s *step) (prompt, source string) {
	var parts, all []string
	for _, c := range items(n) {
		words, inline, ok := t.facet("instructions", c)
		switch {
		case !ok:
			t.leave(n, "no instruction %q was found in this tree", str(c))
			parts = append(parts, "Do "+literal(str(c))+", an instruction of takt whose text was not found at the import.")
			continue
		case inline:
			parts = append(parts, strings.TrimRight(t.words(words, x), "\n"))
		default:
			file := t.prompt(t.top.flow, "instructions-"+strings.TrimSuffix(path.Base(str(c)), ".md"), words)
			s.context = append(s.context, file)
			parts = append(parts, strings.TrimRight("Do what `"+file+"` says.\n"+t.glossary(words, x), "\n"))
		}
		all = append(all, words)
	}
	return strings.Join(parts, "\n\n---\n\n"), strings.Join(all, "\n")
}

// glossary says what the variables in a prompt file are.
func (t *takt) glossary(words string, x *taktStep) string {
	return glossary(words, regexp.MustCompile(taktHole), func(m []string) (string, bool) {
		ours, ok := t.hole(m[1], x)
		return ours, ok && ours != ""
	})
}

// taktReport is a report that a step makes.
type taktReport struct {
	name, field string
	format      *yaml.Node
}

// taktReports are the reports of a step.
func taktReports(n *yaml.Node) (out []taktReport) {
	for _, r := range items(at(n, "output_contracts", "report")) {
		name := path.Base(str(get(r, "name")))
		if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,80}$`).MatchString(name) {
			continue
		}
		out = append(out, taktReport{name, "report_" + varName(strings.TrimSuffix(name, path.Ext(name))), get(r, "format")})
	}
	return out
}
