package folders

import (
	"encoding/json"
	"errors"
	"os"

	"sluice/internal/layout"
	"sluice/internal/tree"
)

// receivedFile is what came of the commits of an attempt's launch.
const receivedFile = "received"

// KeepReceived records what came of a launch's commits. Where there are none the note of its git folder is the record: it
// names the base, and need not outlive a power cut.
func (x *Folders) KeepReceived(key string, g tree.Private, r tree.Received) error {
	file := x.AttemptFile(g.Run, g.Step, g.N, receivedFile)
	if r != (tree.Received{Tip: g.Base}) {
		return layout.Save(file, r)
	}
	if os.Rename(x.PIDFile(key)+layout.GitMark, file) == nil {
		return nil
	}
	return layout.KeepBriefly(file, r)
}

// received reads that. Of a record that a power cut left empty, or cut short, nothing was to be kept: the tip is the base.
func (x *Folders) received(o tree.Order) (tree.Received, error) {
	var r struct {
		tree.Received
		Base string `json:"base"` // of the note
	}
	err := layout.Load(x.AttemptFile(o.Run, o.Step, o.N, receivedFile), &r)
	if torn := (*json.SyntaxError)(nil); errors.As(err, &torn) {
		return tree.Received{Tip: o.Base}, nil
	}
	if r.Received == (tree.Received{}) {
		r.Tip = r.Base
	}
	return r.Received, err
}
