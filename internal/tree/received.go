package tree

import (
	"encoding/json"
	"errors"
	"os"

	"sluice/internal/layout"
)

// KeepReceived records the result of Receive. Without commits, the note of the git folder becomes
// the record: it names the base, and need not survive a power cut.
func KeepReceived(l layout.Layout, key string, g Private, r Received) error {
	file := l.AttemptFile(g.Run, g.Step, g.N, layout.ReceivedFile)
	if r != (Received{Tip: g.Base}) {
		return layout.Save(file, r)
	}
	if os.Rename(l.PIDFile(key)+layout.GitMark, file) == nil {
		return nil
	}
	return layout.KeepBriefly(file, r)
}

// TipOf returns the last commit that Receive recorded for an attempt, or a *Refused. The error is
// fs.ErrNotExist for a launch that no sandbox held: its folder's HEAD is the tip.
func TipOf(l layout.Layout, o Order) (string, error) {
	r, err := receivedOf(l, o)
	if err == nil && r.Refused != "" {
		err = &Refused{Why: "the step's commits cannot be taken: " + r.Refused + ": commit the work again"}
	}
	return r.Tip, err
}

// receivedOf reads that record. A record that a power cut left empty or truncated had nothing to
// keep: the tip is the base.
func receivedOf(l layout.Layout, o Order) (Received, error) {
	var r struct {
		Received
		Base string `json:"base"` // of the note
	}
	err := layout.Load(l.AttemptFile(o.Run, o.Step, o.N, layout.ReceivedFile), &r)
	if _, torn := errors.AsType[*json.SyntaxError](err); torn {
		return Received{Tip: o.Base}, nil
	}
	if r.Received == (Received{}) {
		r.Tip = r.Base
	}
	return r.Received, err
}
