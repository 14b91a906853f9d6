// Package ids says what an id is: of a workflow, step, gate, route, role, agent or task, and of a
// run. An id is one element of a path, whatever the system.
package ids

import (
	"fmt"
	"strings"
)

const (
	Max    = 64  // bytes of an id
	MaxRun = 240 // bytes of a run's id: a child run's has those of its parent and its task

	// Pattern is the rule as a regular expression, but for "..", which no id has.
	Pattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`
)

// Valid reports whether s is an id.
func Valid(s string) bool { return Fault(s) == "" }

// ValidRun reports whether s is a run's id.
func ValidRun(s string) bool { return fault(s, MaxRun) == "" }

// Fault returns what is wrong with an id, as the end of a sentence; "" = nothing.
func Fault(s string) string { return fault(s, Max) }

func fault(s string, most int) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > most:
		return fmt.Sprintf("is longer than %d characters", most)
	}
	for i := range len(s) {
		b := s[i]
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !letter && (i == 0 || b != '.' && b != '_' && b != '-') {
			return "is not an id: letters, digits and . _ - only, a letter or digit first"
		}
	}
	if strings.Contains(s, "..") {
		return `is not an id: it has ".."`
	}
	return ""
}
