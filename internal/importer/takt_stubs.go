package importer

import (
	"regexp"
	"slices"
	"strings"
)

// standIn says what the stand-ins of x answer, so that its gate passes.
func (t *takt) standIn(x *taktStep) {
	pass := slices.IndexFunc(x.rules, func(r taktRule) bool { return r.next == x.passes && r.word == "" && !r.asks })
	if pass < 0 {
		return
	}
	label, when := splitCondition(x.rules[pass].condition)
	given := map[string]string{}
	for _, m := range regexp.MustCompile(structuredAtom).FindAllStringSubmatch(when, -1) {
		if m[1] == x.name && m[3] == "==" {
			given[m[2]] = strings.Trim(m[4], `"`)
		}
	}
	if len(x.children) == 0 {
		if x.leave.answer != nil {
			given["outcome"] = label
			t.flow.plays(x.leave, given)
		}
		return
	}
	m := regexp.MustCompile(`^(all|any)\((.*)\)$`).FindStringSubmatch(label)
	if m == nil {
		return
	}
	words := strings.Split(m[2], `", "`)
	for i, c := range x.children {
		word := strings.Trim(words[min(i, len(words)-1)], `"`)
		if c.step.answer != nil && get(get(c.step.answer, "properties"), "outcome") != nil && (m[1] == "all" || i == 0) {
			t.flow.plays(c.step, map[string]string{"outcome": word})
		}
	}
}
