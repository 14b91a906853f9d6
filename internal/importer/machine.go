package importer

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// passes chooses, for a machine of states, where the pass of each leads: the first of its targets to
// which a pass can go without a circle. Names without targets of their own are ends.
func passes(first string, targets map[string][]string) map[string]string {
	out := map[string]string{}
	leads := func(from, to string) bool {
		for at := from; at != ""; at = out[at] {
			if at == to {
				return true
			}
		}
		return false
	}
	for _, at := range reached(first, targets) {
		for _, to := range targets[at] {
			if out[at] == "" && to != at && !leads(to, at) {
				out[at] = to
			}
		}
	}
	return out
}

// reached returns the names to which the targets lead from first: itself, then the nearest of the others.
func reached(first string, targets map[string][]string) []string {
	out := []string{first}
	for i := 0; i < len(out); i++ {
		for _, to := range targets[out[i]] {
			if !slices.Contains(out, to) {
				out = append(out, to)
			}
		}
	}
	return out
}

// leaveOut counts a node to which nothing leads, as a spec of ours may not have it.
func (r *reader) leaveOut(n *yaml.Node, prefix, name, why string) {
	for _, p := range pairs(n) {
		r.leave(p.value, "%s", why)
	}
	r.account(n, prefix, name, nil)
}

// fork adds a step and, where it has branches, these and the step at which they join. It returns the last of them.
func (f *flow) fork(id string, branches []*step, joinID func() string) *step {
	first := &step{id: id}
	f.steps = append(f.steps, first)
	if len(branches) == 0 {
		return first
	}
	join := &step{id: joinID()}
	for _, b := range branches {
		b.next = []string{join.id}
		first.next = append(first.next, b.id)
	}
	f.steps = append(append(f.steps, branches...), join)
	return join
}

// toFront moves the first for which is holds to the front; ok is false where there is none.
func toFront[T any](of []T, is func(T) bool) (ok bool) {
	i := slices.IndexFunc(of, is)
	if i > 0 {
		one := of[i]
		copy(of[1:], of[:i])
		of[0] = one
	}
	return i >= 0
}
