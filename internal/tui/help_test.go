package tui

import (
	"strings"
	"testing"

	"sluice/tools/printed"
)

// TestTopKeysAreDocumented: docs/top.md has the table of keys, which the help shows.
func TestTopKeysAreDocumented(t *testing.T) {
	var rows [][]string
	for _, k := range Keys() {
		keys := strings.Fields(k.Keys)
		for i, x := range keys {
			if len(x) == 1 {
				keys[i] = "`" + x + "`"
			}
		}
		rows = append(rows, []string{strings.Join(keys, " "), k.Does})
	}
	printed.Check(t, "../../docs/top.md", "keys", printed.Table([]string{"key", "what it does"}, rows))
}
