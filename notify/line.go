package notify

import (
	"errors"
	"fmt"

	"sluice/internal/text"
)

// The desk and its helper exchange lines of JSON: requests go to the helper's standard input,
// reports come from its standard output.

// The operations of a request.
const (
	opShow   = "show"   // show a notice; it replaces one of the same id that is on the screen
	opClose  = "close"  // remove the notice of the id from the screen; no report follows
	opRun    = "run"    // start a person's own program
	opServer = "server" // name the notification service
)

// The events of a report.
const (
	eventShown  = "shown"  // a request was done
	eventFailed = "failed" // a request could not be done, with the reason
	eventAction = "action" // a button of the notice with the id was pressed
	eventClosed = "closed" // the notice with the id left the screen without our request
	eventLost   = "lost"   // the notification service went away, with all notices
)

// request is one line to the helper.
type request struct {
	Op       string   `json:"op"`
	Seq      int64    `json:"seq,omitempty"` // returned with the answer
	ID       string   `json:"id,omitempty"`
	Title    string   `json:"title,omitempty"`
	Body     string   `json:"body,omitempty"`
	Brief    string   `json:"brief,omitempty"` // the body if there are buttons
	Critical bool     `json:"critical,omitempty"`
	Actions  []Action `json:"actions,omitempty"`
	Argv     []string `json:"argv,omitempty"`
	Dir      string   `json:"dir,omitempty"`
}

// report is one line from the helper.
type report struct {
	Event string `json:"event"`
	Seq   int64  `json:"seq,omitempty"`
	ID    string `json:"id,omitempty"`
	Key   string `json:"key,omitempty"` // of the action
	// why it was closed: 1 expired, 2 by the person, 3 by a call, 4 undefined
	Reason  uint32 `json:"reason,omitempty"`
	Why     string `json:"why,omitempty"`
	Hung    bool   `json:"hung,omitempty"`
	Server  string `json:"server,omitempty"`
	Buttons bool   `json:"buttons,omitempty"`
}

// failure returns the error in a report; nil if the request was done.
func (r report) failure() error {
	switch {
	case r.Event != eventFailed:
		return nil
	case r.Hung:
		return fmt.Errorf("%s%w", r.Why, errHung)
	}
	return errors.New(r.Why)
}

// failed returns the report of a request that could not be done.
func failed(r request, err error) report {
	return report{Event: eventFailed, Seq: r.Seq, ID: r.ID, Why: text.Clean(err.Error(), maxWhy),
		Hung: errors.Is(err, errHung)}
}

// showing returns the request that shows a clean notice.
func showing(goos string, n Notice) request {
	title, body := dress(goos, n.Title, n.Body)
	_, brief := dress(goos, n.Title, n.Brief)
	return request{Op: opShow, Title: title, Body: body, Brief: brief, Critical: n.Urgency == UrgencyCritical,
		Actions: n.Actions}
}
