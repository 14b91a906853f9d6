package main

import (
	"strings"

	"sluice/internal/text"
)

// nearest is the known name that was likely meant: the one with few letters wrong, else the only one of which one
// is the beginning of the other.
func nearest(name string, known []string) string {
	if near := text.Nearest(name, known); near != "" || name == "" {
		return near
	}
	found := ""
	for _, k := range known {
		if !strings.HasPrefix(k, name) && !strings.HasPrefix(name, k) {
			continue
		}
		if found != "" {
			return ""
		}
		found = k
	}
	return found
}
