package engine

// whyProtect begins the reason of a round that asks because of protected files.
const whyProtect = "protect: the step changed "

// unpassed are the protected files that the attempt changed, but those that a person has passed as they are, in a round
// that asked because of them.
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
			if !passed || of == nil || of.Digest != q.Digest { // it was checked once more, and has become another
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

// protectedAs is what the i-th protected file became; "" where nobody can tell.
func (a *Attempt) protectedAs(i int) string {
	if len(a.ProtectedAs) != len(a.Protected) { // a fact of an older release has none
		return ""
	}
	return a.ProtectedAs[i]
}
