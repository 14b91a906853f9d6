package workers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// Versions are the versions of the messages that a side speaks. Newest goes up with a message that an
// older side would take wrongly, Least where what an older side says is no longer enough. A field
// that may be missing changes neither. In each version a heartbeat has who the worker is, its labels,
// slots and Versions, so that a worker of any release is listed.
type Versions struct {
	Newest int `json:"wire,omitempty"`       // 0: of a release that did not say; that is 1
	Least  int `json:"wire_least,omitempty"` // 0: that is 1
}

// versions are those of this release. 2: requests have a time, heartbeats mark their launches.
func versions() Versions { return Versions{Newest: 2, Least: 2} }

// common returns the newest version that both sides speak; 0 = none.
func (v Versions) common(w Versions) int {
	n := min(cmp.Or(v.Newest, 1), cmp.Or(w.Newest, 1))
	if n < cmp.Or(v.Least, 1) || n < cmp.Or(w.Least, 1) {
		return 0
	}
	return n
}

// foreign returns why a message cannot be taken although it was sent in good order; "" = it can. err is
// what its reading said.
func (v Versions) foreign(of string, err error) string {
	var kind *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &kind) || versions().common(v) > 0 {
		return ""
	}
	ours := versions()
	return fmt.Sprintf("%s speaks version %d of the messages between machines, and this one %d: have the same release of "+
		"sluice on both", of, cmp.Or(v.Newest, 1), ours.Newest)
}
