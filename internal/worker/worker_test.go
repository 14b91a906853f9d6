package worker

import (
	"errors"
	"strings"
	"testing"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/job"
)

// What an order has a worker start is an agent of the worker's own settings, unless the worker's label
// says that it takes commands.
func TestNoCommandWithoutTheLabel(t *testing.T) {
	t.Parallel()
	p, err := New(Options{}).prepare(t.Context(), launch.Sent{Argv: []string{"true"}})
	var no *job.Refusal
	if !errors.As(err, &no) || no.Exit.Class != engine.ClassFatal || !strings.Contains(no.Exit.Why, "takes no commands") {
		t.Errorf("%v, %+v", err, p)
	}
}
