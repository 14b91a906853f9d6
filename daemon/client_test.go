package daemon

import (
	"context"
	"testing"

	"sluice/internal/fault"
)

// TestRefusalKeepsItsAdvice: what the API refuses comes back with its advice apart, so that nobody
// looks for it in a sentence.
func TestRefusalKeepsItsAdvice(t *testing.T) {
	s := serveTest(t, t.TempDir(), newStage())
	_, err := s.client.Run(context.Background(), "none-1")
	if err == nil || err.Error() != "no run none-1 is known here: sluice ls names them" {
		t.Fatalf("%v", err)
	}
	if what, advice := fault.Split(err); what != "no run none-1 is known here" || advice != "sluice ls names them" {
		t.Errorf("%q, %q", what, advice)
	}
}
