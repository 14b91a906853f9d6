package worker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sluice/agents/launch"
	"sluice/internal/health"
)

// A result that cannot be stored is tried again, and its worker says why. Once its launch is asked to end, it ends
// without its work: it would wait for ever, and so would who has asked.
func TestResultThatCannotBeStored(t *testing.T) {
	t.Parallel()
	const key = "far-1/A#1.1"
	w, tries := New(Options{Notes: &health.Notes{}}), 0
	back := launch.Back{Commit: strings.Repeat("1", 40), Tip: strings.Repeat("1", 40)}
	err := w.giveBack(t.Context(), key, &back, func() error {
		if tries++; tries == 3 {
			if notes := w.All(); len(notes) != 1 || notes[0] != "the result of "+key+": no room" {
				t.Errorf("it says %q", notes)
			}
			w.end(key, true)
		}
		return errors.New("no room")
	})
	want := launch.Back{Refused: "its worker could not store its work: no room"}
	if err != nil || tries != 3 || back.Refused != want.Refused || back.Commit+back.Tip != "" || len(w.All()) > 0 {
		t.Errorf("after %d tries %+v, %v, %q", tries, back, err, w.All())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.giveBack(ctx, key, &launch.Back{}, func() error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a worker that ends has a result: %v", err)
	}
}
