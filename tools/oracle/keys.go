package oracle

import "fmt"

// Keys is what became of triggers' keys: waits, the run that one started, or why it started none. Each
// method returns what is wrong.
type Keys map[string]string

const waits = "it waits for its run"

// Fired: the key starts a run.
func (k Keys) Fired(key string) string { return k.turn(key, waits, "") }

// Skipped: the key starts no run, from the beginning or any more.
func (k Keys) Skipped(key, why string) string {
	if why == "" {
		return key + " is skipped without a reason"
	}
	if k[key] == waits {
		return k.turn(key, why, waits)
	}
	return k.turn(key, why, "")
}

// Started: the run of the key has started.
func (k Keys) Started(key, run string) string { return k.turn(key, run, waits) }

func (k Keys) turn(key, to, from string) string {
	if k[key] != from {
		return fmt.Sprintf("%s: %q, after it was %q", key, to, k[key])
	}
	k[key] = to
	return ""
}

// Waiting holds the keys that wait against those of which somebody knows: none is lost.
func (k Keys) Waiting(known map[string]bool) string {
	for key := range known {
		if k[key] != waits {
			return fmt.Sprintf("%s waits, after it was %q", key, k[key])
		}
	}
	for key, is := range k {
		if is == waits && !known[key] {
			return key + " has fired and is lost"
		}
	}
	return ""
}

// Decided reports whether the key has fired or was skipped.
func (k Keys) Decided(key string) bool { return k[key] != "" }
