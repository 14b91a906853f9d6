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

// The built-in templates of roles, in the form in which a project may write its own.
//
//go:embed roles/*.md
var builtIn embed.FS

// Role is a built-in role with its template.
type Role struct{ Name, Text string }

// Roles returns the built-in roles. Each text is a whole file, for a project to change.
func Roles() []Role {
	names := []string{"planner", "test-writer", "implementor", "reviewer",
		"tester", "supervisor", "controller", "fixer"}
	return each(names, func(name string) Role { return Role{name, shipped(name)} })
}

// shipped returns a built-in template; "" where there is none.
func shipped(name string) string {
	body, err := fs.ReadFile(builtIn, "roles/"+name+".md")
	if err != nil {
		return ""
	}
	return string(body)
}

// stepTemplate returns the built-in template of a role that works; where there is none, a general one.
func stepTemplate(role string) string {
	return orElse(shipped(templateName(role, false)), shipped("any"))
}

// reviewTemplate returns the built-in template of a role that reviews: whatever it is called, it judges.
func reviewTemplate(role string) string { return shipped(templateName(role, true)) }

// templateName returns the role whose template is taken. Who judges is never told to be one who works.
func templateName(role string, judges bool) string {
	switch {
	case judges && (!mayJudge(role) || shipped(role) == ""):
		return "reviewer"
	case role == "implementer":
		return "implementor"
	}
	return role
}

// mayJudge reports whether the role's own template may be one that judges: it is none of the built-in ones that work.
func mayJudge(role string) bool {
	working := []string{"", "any", "planner", "test-writer", "implementor", "implementer", "fixer"}
	return !slices.Contains(working, role)
}

// isSection reports whether a step's prompt or a review's has a section of that name.
func isSection(name string) bool { return slices.Contains(sectionNames(), name) }

func sectionNames() []string {
	all := append(StepInput{}.sections(), ReviewInput{}.sections()...)
	return each(all, func(s section) string { return s.name })
}

// words may stand within a line of a template.
func words() []string {
	return []string{"role", "workflow", "run", "step", "name", "attempt", "gate", "round"}
}

// placeholder stands for a section or a word in a template. $${{ is a text that begins with ${{.
func placeholder() *regexp.Regexp { return regexp.MustCompile(`\$?\$\{\{([^}\n]*)(\}\})?`) }

// checkTemplate returns the faults of a template.
func checkTemplate(body string) []Fault {
	if len(body) > maxTemplate {
		return []Fault{{Line: 1, Col: 1, Message: fmt.Sprintf("more than %d bytes: "+
			"keep what every task of the role needs, and let a context file say the rest", maxTemplate)}}
	}
	if strings.TrimSpace(body) == "" {
		return []Fault{{Line: 1, Col: 1, Message: "empty: write what the role is to do, or remove the file"}}
	}
	var faults []Fault
	var fence text.Fence
	placed, place := map[string]bool{}, placeholder()
	for n, l := range strings.Split(body, "\n") {
		l = strings.TrimRight(l, "\r")
		before := fence
		fence = fence.Next(l)
		inFence := before.Open() || fence.Open()
		for _, m := range place.FindAllStringSubmatchIndex(l, -1) {
			whole, inner, closed := l[m[0]:m[1]], l[m[2]:m[3]], m[4] >= 0
			if strings.HasPrefix(whole, "$$") {
				continue
			}
			alone := strings.TrimSpace(l) == whole && !inFence
			if why := placeholderFault(inner, closed, alone, placed); why != "" {
				faults = append(faults, Fault{Line: n + 1, Col: utf8.RuneCountInString(l[:m[0]]) + 1, Message: why})
			}
		}
	}
	return faults
}

// placeholderFault returns what is wrong with a placeholder, and notes the section that it places.
func placeholderFault(inner string, closed, alone bool, placed map[string]bool) string {
	name := strings.TrimSpace(inner)
	switch {
	case !closed:
		return "${{ is not closed: }} is missing on its line"
	case slices.Contains(words(), name):
		return ""
	case !isSection(name):
		near := text.Nearest(name, append(sectionNames(), words()...))
		if near != "" {
			near = fmt.Sprintf(" (did you mean ${{ %s }}?)", near)
		}
		return fmt.Sprintf("${{%s}}: no such placeholder%s: write $${{ where the text itself is meant", inner, near)
	case !alone:
		return fmt.Sprintf("${{ %s }} is a section of the prompt: "+
			"it stands alone on its line, outside of fenced blocks", name)
	case placed[name]:
		return fmt.Sprintf("${{ %s }} stands there twice: remove one", name)
	}
	placed[name] = true
	return ""
}

// fill writes the template with its sections in their places, then the sections that it does not place, in their
// order. What stands for a placeholder is not looked at again: nothing in it is one.
func (p *page) fill(template string, sections []section, word map[string]string) {
	var own []string
	flush := func() {
		if s := strings.Trim(strings.Join(own, "\n"), "\n"); s != "" {
			p.raw("\n" + s + "\n")
		}
		own = nil
	}
	var fence text.Fence
	placed, place := map[string]bool{}, placeholder()
	for l := range strings.SplitSeq(text.Prose(template, maxTemplate), "\n") {
		inFence := fence.Open()
		fence = fence.Next(l)
		name := sectionOn(place, l)
		if inFence || name == "" || placed[name] {
			own = append(own, inLine(place, l, word))
			continue
		}
		flush()
		placed[name] = true
		if i := slices.IndexFunc(sections, func(s section) bool { return s.name == name }); i >= 0 {
			sections[i].write(p)
		}
	}
	flush()
	for _, s := range sections {
		if !placed[s.name] {
			s.write(p)
		}
	}
}

// sectionOn returns the section that a line places; "" where it places none.
func sectionOn(place *regexp.Regexp, l string) string {
	l = strings.TrimSpace(l)
	m := place.FindStringSubmatch(l)
	if m == nil || m[0] != l || strings.HasPrefix(l, "$$") {
		return ""
	}
	if name := strings.TrimSpace(m[1]); isSection(name) {
		return name
	}
	return ""
}

// inLine returns a line of a template with its words filled in.
func inLine(place *regexp.Regexp, l string, word map[string]string) string {
	return place.ReplaceAllStringFunc(l, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		if v, ok := word[strings.Trim(m, "${} ")]; ok {
			return v
		}
		return m
	})
}
