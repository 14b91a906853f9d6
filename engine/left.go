package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/text"
)

// Left is a change of the law in a checkout where people work too, which nobody has passed. A later run asks about it.
type Left struct {
	Run  string `json:"run"`            // the run that made it, or the topmost one above that
	Name string `json:"name,omitempty"` // "": all that the run changed there, as no check has looked at it
	As   string `json:"as,omitempty"`   // see CheckResult
}

// anyRun stands for more runs than are kept.
const anyRun = "one of many"

// maxUnchecked is how many changes a worktree has at most when a run is added that no check has looked at.
const maxUnchecked = 100

// mayLeave notes that an agent works in a checkout. Until a check, nobody knows what it changes.
func mayLeave(s *State, r *Run, a *Attempt) {
	if r.Workspace != "" || a.Reads {
		return
	}
	l, left := Left{Run: s.root(r).ID}, s.Left[a.Tree]
	if len(left) >= maxUnchecked && !slices.Contains(left, l) {
		left = slices.DeleteFunc(left, func(o Left) bool { return o.Name == "" })
		l = Left{Run: anyRun, Name: fmt.Sprintf("what more than %d runs may have changed", maxUnchecked)}
	}
	if !slices.Contains(left, l) {
		set(&s.Left, a.Tree, append(left, l))
	}
}

// leaves notes what a check has found: changes of the run, and what earlier runs had left.
func leaves(s *State, r *Run, a *Attempt) {
	if r.Workspace != "" || a.Reads {
		return
	}
	delete(s.Left, a.Tree)
	for _, name := range r.unpassed(a) {
		as, by := a.changed(name)
		set(&s.Left, a.Tree, append(s.Left[a.Tree], Left{cmp.Or(by, s.root(r).ID), name, as}))
	}
}

// accept removes what a person has passed.
func accept(s *State, a *Attempt) {
	left := slices.DeleteFunc(s.Left[a.Tree], func(l Left) bool {
		as, _ := a.changed(l.Name)
		return as == l.As && slices.Contains(a.Protected, l.Name)
	})
	if set(&s.Left, a.Tree, left); len(left) == 0 {
		delete(s.Left, a.Tree)
	}
}

// LeftIn returns what is left in a checkout, and what people have passed in each run that is there without a name.
func LeftIn(s *State, tree string) (left, passed []Left) {
	left = slices.Clone(s.Left[tree])
	for _, l := range left {
		for _, r := range s.Runs {
			if l.Name != "" || s.root(r).ID != l.Run {
				continue
			}
			for _, p := range accepted(r) {
				passed = append(passed, Left{l.Run, p.Name, p.As})
			}
		}
	}
	return left, passed
}

// protectWords returns why a person is asked about files of the law: which run changed them.
func (a *Attempt) protectWords(files []string) string {
	var own, left []string
	for _, name := range files[:min(len(files), 10)] {
		if _, by := a.changed(name); by != "" {
			left = append(left, name+" ("+by+")")
		} else {
			own = append(own, name)
		}
	}
	words := whyProtect + strings.Join(own, ", ")
	if len(left) > 0 {
		words = strings.TrimPrefix(words+"; protect: an earlier run changed "+strings.Join(left, ", ")+
			", and nobody has passed it", whyProtect+"; ")
	}
	return words + text.More(max(len(files)-10, 0), "file")
}
