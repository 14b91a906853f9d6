package executor

import (
	"encoding/json"
)

// shownTask is a task as agents see it.
func shownTask(body json.RawMessage) string {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return "{}"
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "{}"
	}
	if len(data) > maxShownTask {
		return string(data[:maxShownTask]) + "\n[cut]"
	}
	return string(data)
}

// maxShownTask is how much of a task a prompt shows.
const maxShownTask = 16 << 10
