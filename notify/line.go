package notify

import (
	"errors"
	"fmt"

	"sluice/internal/text"
)

// The desk and its helper speak in lines of JSON: requests go to the helper's
// standard input, reports come from its standard output.

// What a request asks for.
const (
	opShow   = "show"   // a notice; one of the same id, if it is still on the screen, is replaced
	opClose  = "close"  // the notice of the id is taken off the screen; no report follows
	opRun    = "run"    // a program of the person's own is started
	opServer = "server" // what shows notices here
)

// What a report tells.
const (
	eventShown  = "shown"  // a request was done
	eventFailed = "failed" // a request could not be done, with the reason
	eventAction = "action" // a button of the notice with the id was pressed
	eventClosed = "closed" // the notice with the id is no longer on the screen, and we did not ask for that
	eventLost   = "lost"   // the notification service went away, and every notice with it
)

// request is one line to the helper.
type request struct {
	Op       string   `json:"op"`
	Seq      int64    `json:"seq,omitempty"` // comes back with the answer
	ID       string   `json:"id,omitempty"`
	Title    string   `json:"title,omitempty"`
	Body     string   `json:"body,omitempty"`
	Brief    string   `json:"brief,omitempty"` // the body where there are buttons
	Critical bool     `json:"critical,omitempty"`
	Actions  []Action `json:"actions,omitempty"`
	Argv     []string `json:"argv,omitempty"`
	Dir      string   `json:"dir,omitempty"`
}

// report is one line from the helper.
type report struct {
	Event   string `json:"event"`
	Seq     int64  `json:"seq,omitempty"`
	ID      string `json:"id,omitempty"`
	Key     string `json:"key,omitempty"`    // of the action
	Reason  uint32 `json:"reason,omitempty"` // why it was closed: 1 expired, 2 by the person, 3 by a call, 4 undefined
	Why     string `json:"why,omitempty"`
	Hung    bool   `json:"hung,omitempty"`
	Server  string `json:"server,omitempty"`
	Buttons bool   `json:"buttons,omitempty"`
}

// failure is the error a report tells of; nil where the request was done.
func (r report) failure() error {
	switch {
	case r.Event != eventFailed:
		return nil
	case r.Hung:
		return fmt.Errorf("%s%w", r.Why, errHung)
	}
	return errors.New(r.Why)
}

// failed is the report of a request that could not be done.
func failed(r request, err error) report {
	return report{Event: eventFailed, Seq: r.Seq, ID: r.ID, Why: text.Clean(err.Error(), maxWhy), Hung: errors.Is(err, errHung)}
}

// showing is the request that shows a clean notice.
func showing(goos string, n Notice) request {
	title, body := dress(goos, n.Title, n.Body)
	_, brief := dress(goos, n.Title, n.Brief)
	r := request{Op: opShow, Title: title, Body: body, Brief: brief, Critical: n.Urgency == UrgencyCritical, Actions: n.Actions}
	return r
}
