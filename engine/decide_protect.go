package engine

import "slices"

// whyProtect is the prefix of the reason when a round asks about protected files.
const whyProtect = "protect: the step changed "

// unpassed returns the protected files that the attempt changed, except those that a person passed
// with the same content in a round that asked about them.
func (r *Run) unpassed(a *Attempt) (files []string) {
	if len(a.Protected) == 0 {
		return nil
	}
	type file struct{ name, as string }
	was := map[file]bool{}
	for _, qs := range r.Rounds {
		for _, q := range qs {
			of := r.Attempt(q.Step, q.Attempt)
			passed := q.Outcome == OutcomePass && q.ByKind == Human && q.Protect
			if !passed || of == nil || of.Digest != q.Digest { // it was checked again, and its content differs
				continue
			}
			for i, name := range of.Protected {
				was[file{name, of.protectedAs(i)}] = true
			}
		}
	}
	for i, name := range a.Protected {
		if as := a.protectedAs(i); as == "" || !was[file{name, as}] {
			files = append(files, name)
		}
	}
	return files
}

// protectedAs returns what the i-th protected file became, or "" if unknown.
func (a *Attempt) protectedAs(i int) string {
	if len(a.ProtectedAs) != len(a.Protected) { // facts of older releases lack it
		return ""
	}
	return a.ProtectedAs[i]
}

// changed returns what a protected file became, and the earlier run that changed it, if it was one.
func (a *Attempt) changed(name string) (as, by string) {
	i := slices.Index(a.Protected, name)
	if i >= 0 && len(a.ProtectedBy) == len(a.Protected) {
		by = a.ProtectedBy[i]
	}
	if i >= 0 {
		as = a.protectedAs(i)
	}
	return as, by
}
