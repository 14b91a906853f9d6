// Package ids says what an id is: of a workflow, step, gate, route, role, agent or task, and of a
// run. An id is one element of a path, whatever the system. It also says what the labels of workers are,
// and digests and keys in hexadecimal.
package ids

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	Max    = 64  // bytes of an id
	MaxRun = 240 // bytes of a run's id: a child run's has those of its parent and its task

	MaxLabels = 16 // that a worker has, or that a step or a role asks of one

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

// Compare orders ids; digits in them compare as numbers.
func Compare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		if m, n := digits(x), digits(y); m > 0 && n > 0 {
			p, q := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); c != 0 {
				return c
			}
			x, y = x[m:], y[n:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits returns how many digits s begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// LabelsFault returns what is wrong with least to MaxLabels labels; "" = nothing.
func LabelsFault(labels []string, least int) string {
	if n := len(labels); n < least || n > MaxLabels {
		return fmt.Sprintf("%d labels: want %d to %d", n, least, MaxLabels)
	}
	for _, l := range labels {
		if why := Fault(l); why != "" {
			return fmt.Sprintf("label %.40q %s", l, why)
		}
	}
	return ""
}

// Hex reports whether s is that many bytes in lower-case hexadecimal.
func Hex(s string, bytes int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == bytes && hex.EncodeToString(b) == s
}
