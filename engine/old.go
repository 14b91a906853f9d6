package engine

import "strings"

// What releases before this one recorded in words only, and this one in fields.

// upgraded returns the fact with the limit that its words name.
func (f RunEnded) upgraded() Fact {
	if f.Limit == "" {
		f.Limit = limitIn(f.Why)
	}
	return f
}

// upgraded returns the fact with what its words say of protected files.
func (f HumanAsked) upgraded() Fact {
	f.Protect = f.Protect || strings.HasPrefix(f.Why, whyProtect)
	return f
}

// upgrade does the same for a run of a snapshot.
func (r *Run) upgrade() {
	if r.EndLimit == "" {
		r.EndLimit = limitIn(r.EndWhy)
	}
	for _, qs := range r.Rounds {
		for _, q := range qs {
			q.Protect = q.Protect || strings.HasPrefix(q.Why, whyProtect)
		}
	}
}

// limitIn returns the key of the limit that the words of a run's end once began with; "" = none.
func limitIn(why string) string {
	rest, ok := strings.CutPrefix(why, pausedByLimit)
	if !ok {
		return ""
	}
	key, _, _ := strings.Cut(rest, " ")
	return key
}
