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
	was := accepted(r)
	for _, name := range a.Protected {
		if as, _ := a.changed(name); !slices.Contains(was, Left{Name: name, As: as}) {
			files = append(files, name)
		}
	}
	return files
}

// accepted returns the changes that people passed in rounds of the run that asked about them.
func accepted(r *Run) (all []Left) {
	for _, qs := range r.Rounds {
		for _, q := range qs {
			of := r.Attempt(q.Step, q.Attempt)
			passed := q.Outcome == OutcomePass && q.ByKind == Human && q.Protect
			if !passed || of == nil || of.Digest != q.Digest { // it was checked again, and its content differs
				continue
			}
			for _, name := range of.Protected {
				if as, _ := of.changed(name); as != "" {
					all = append(all, Left{Name: name, As: as})
				}
			}
		}
	}
	return all
}

// changed returns what a protected file became, "" if unknown, and the earlier run that changed it, if it was one.
func (a *Attempt) changed(name string) (as, by string) {
	i := slices.Index(a.Protected, name)
	if i >= 0 && len(a.ProtectedAs) == len(a.Protected) { // facts of older releases lack it
		as = a.ProtectedAs[i]
	}
	if i >= 0 && len(a.ProtectedBy) == len(a.Protected) {
		by = a.ProtectedBy[i]
	}
	return as, by
}
