package prompt

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/internal/text"
)

// The built-in prompts of roles, in the form in which a project may write its own.
//
//go:embed roles/*.md
var prompts embed.FS

// Role is a built-in role: its name and its prompt.
type Role struct{ Name, Text string }

// Roles gives the built-in roles. Each text is a whole prompt file, to be changed by a project.
func Roles() []Role {
	var out []Role
	for _, name := range []string{"planner", "test-writer", "implementor", "reviewer", "tester", "supervisor", "controller", "fixer"} {
		out = append(out, Role{name, shipped(name)})
	}
	return out
}

func shipped(name string) string {
	text, err := fs.ReadFile(prompts, "roles/"+name+".md")
	if err != nil {
		return "" // not built in
	}
	return string(text)
}

// roleTemplate is the built-in template of a role; where there is none, a general one.
func roleTemplate(role string) string {
	if role == "implementer" {
		role = "implementor"
	}
	return orElse(shipped(role), shipped("any"))
}

// reviewTemplate is the built-in template of a role that reviews: whatever it is called, it judges.
func reviewTemplate(role string) string { return shipped(templateName(role, true)) }

// templateName is whose template a role goes by where it does the work, or judges it: who judges is never told to be one
// who works.
func templateName(role string, judges bool) string {
	switch {
	case judges && (!mayJudge(role) || shipped(role) == ""):
		return "reviewer"
	case role == "implementer":
		return "implementor"
	}
	return role
}

// mayJudge says that the role's own prompt may be one that judges: it is none of the built-in ones that work.
func mayJudge(role string) bool {
	return !slices.Contains([]string{"", "any", "planner", "test-writer", "implementor", "implementer", "fixer"}, role)
}

// Sections of a prompt that a template may place, in the order in which they stand where it does not: those of a step's,
// those of a review's.
func stepSections() []string {
	return []string{"where", "task", "context", "inputs", "rules", "retry", "notes", "outputs", "criterion", "answer", "signal"}
}

func reviewSections() []string {
	return []string{"where", "rules", "task", "look", "criterion", "context", "inputs", "work", "retry", "notes", "verdict"}
}

// words are what may stand within a line of a template.
func words() []string {
	return []string{"role", "workflow", "run", "step", "name", "attempt", "gate", "round"}
}

// placeholder is what stands for a value in a template. $${{ is a text that begins with ${{.
func placeholder() *regexp.Regexp { return regexp.MustCompile(`\$?\$\{\{([^}\n]*)(\}\})?`) }

// checkTemplate gives all that is wrong with the text of a role's prompt file; none = it can be gone by.
func checkTemplate(body string) []Fault {
	if len(body) > maxTemplate {
		return []Fault{{Line: 1, Col: 1, Message: fmt.Sprintf("more than %d bytes: keep what every task of the role needs, and let a context file say the rest", maxTemplate)}}
	}
	if strings.TrimSpace(body) == "" {
		return []Fault{{Line: 1, Col: 1, Message: "empty: write what the role is to do, or remove the file"}}
	}
	var faults []Fault
	placed, fence := map[string]bool{}, text.Fence{}
	sections := slices.Concat(stepSections(), reviewSections())
	for n, l := range strings.Split(body, "\n") {
		l = strings.TrimRight(l, "\r")
		inFence := fence.Open()
		fence = fence.Next(l)
		inFence = inFence || fence.Open()
		for _, m := range placeholder().FindAllStringSubmatchIndex(l, -1) {
			whole := l[m[0]:m[1]]
			if strings.HasPrefix(whole, "$$") {
				continue
			}
			name := strings.TrimSpace(l[m[2]:m[3]])
			at := Fault{Line: n + 1, Col: utf8.RuneCountInString(l[:m[0]]) + 1}
			switch {
			case m[4] < 0:
				at.Message = "${{ is not closed: }} is missing on its line"
			case slices.Contains(words(), name):
				continue
			case !slices.Contains(sections, name):
				at.Message = fmt.Sprintf("${{%s}}: no such placeholder", l[m[2]:m[3]])
				if near := text.Nearest(name, slices.Concat(sections, words())); near != "" {
					at.Message += fmt.Sprintf(" (did you mean ${{ %s }}?)", near)
				}
				at.Message += ": write $${{ where the text itself is meant"
			case strings.TrimSpace(l) != whole || inFence:
				at.Message = fmt.Sprintf("${{ %s }} is a section of the prompt: it stands alone on its line, outside of fenced blocks", name)
			case placed[name]:
				at.Message = fmt.Sprintf("${{ %s }} stands there twice: remove one", name)
			default:
				placed[name] = true
				continue
			}
			faults = append(faults, at)
		}
	}
	return faults
}

// fill writes the template with what stands for its placeholders: the sections where it places them, then those that it
// does not place, in their order. Values are not looked at again: nothing in them is a placeholder.
func (p *page) fill(template string, sections []string, section map[string]string, word map[string]string) {
	placed := map[string]bool{}
	var own []string
	flush := func() {
		if text := strings.Trim(strings.Join(own, "\n"), "\n"); text != "" {
			p.raw("\n" + text + "\n")
		}
		own = nil
	}
	var fence text.Fence
	for _, l := range strings.Split(text.Prose(template, maxTemplate), "\n") {
		inFence := fence.Open()
		fence = fence.Next(l)
		m := placeholder().FindStringSubmatch(strings.TrimSpace(l))
		name := ""
		if m != nil && m[0] == strings.TrimSpace(l) && !strings.HasPrefix(m[0], "$$") {
			name = strings.TrimSpace(m[1])
		}
		known := slices.Contains(stepSections(), name) || slices.Contains(reviewSections(), name)
		if inFence || !known || placed[name] {
			own = append(own, inLine(l, word))
			continue
		}
		flush()
		p.raw(section[name])
		placed[name] = true
	}
	flush()
	for _, name := range sections {
		if !placed[name] {
			p.raw(section[name])
		}
	}
}

// inLine is a line of a template with its words filled in.
func inLine(l string, word map[string]string) string {
	return placeholder().ReplaceAllStringFunc(l, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		if v, ok := word[strings.Trim(m, "${} ")]; ok {
			return v
		}
		return m
	})
}
