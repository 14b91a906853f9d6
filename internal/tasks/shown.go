package tasks

import "encoding/json"

// Shown is a task as agents see it.
func Shown(body json.RawMessage) string {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return "{}"
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "{}"
	}
	if len(data) > maxShown {
		return string(data[:maxShown]) + "\n[cut]"
	}
	return string(data)
}

// maxShown is how much of a task a prompt shows.
const maxShown = 16 << 10
