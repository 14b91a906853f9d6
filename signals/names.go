package signals

import (
	"fmt"
	"strings"

	"sluice/internal/ids"
)

const doneEnding = "-done.json"

// StepOf returns the step whose sentinel has this file name: "<step-id>-done.json".
func StepOf(name string) (string, bool) {
	step, ok := strings.CutSuffix(name, doneEnding)
	if !ok || !ids.Valid(step) {
		return "", false
	}
	return step, true
}

// clip quotes a foreign name for a message.
func clip(s string) string { return fmt.Sprintf("%.60q", s) }
