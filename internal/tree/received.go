package tree

import (
	"encoding/json"
	"errors"
	"os"

	"sluice/internal/layout"
)

// receivedFile is what came of the commits of an attempt's launch.
const receivedFile = "received"

// KeepReceived records what came of a launch's commits. Where there are none the note of its git folder is the record: it
// names the base, and need not outlive a power cut.
func KeepReceived(l layout.Layout, key string, g Private, r Received) error {
	file := l.AttemptFile(g.Run, g.Step, g.N, receivedFile)
	if r != (Received{Tip: g.Base}) {
		return layout.Save(file, r)
	}
	if os.Rename(l.PIDFile(key)+layout.GitMark, file) == nil {
		return nil
	}
	return layout.KeepBriefly(file, r)
}

// ReceivedOf reads that. Of a record that a power cut left empty, or cut short, nothing was to be kept: the tip is the base.
func ReceivedOf(l layout.Layout, o Order) (Received, error) {
	var r struct {
		Received
		Base string `json:"base"` // of the note
	}
	err := layout.Load(l.AttemptFile(o.Run, o.Step, o.N, receivedFile), &r)
	if torn := (*json.SyntaxError)(nil); errors.As(err, &torn) {
		return Received{Tip: o.Base}, nil
	}
	if r.Received == (Received{}) {
		r.Tip = r.Base
	}
	return r.Received, err
}
