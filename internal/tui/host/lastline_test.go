package host

import (
	"io"
	"strings"
	"testing"

	"sluice/internal/console"
)

// TestLastLine: what an agent said last is a line with words, not the fence or the brace that ends its answer.
func TestLastLine(t *testing.T) {
	con := console.New(nil, strings.NewReader(""), io.Discard, io.Discard)
	for end, want := range map[string]string{
		"reading main.go\n":                         "reading main.go",
		"It is good.\n```json\n{\n}\n```\n":         "It is good.",
		"```json\n{\"verdict\": \"pass\"}\n```\n\n": `{"verdict": "pass"}`,
		"---\n":    "before",
		"  検索\n\n": "検索",
	} {
		if got := lastLine(con, t.TempDir(), end, "before"); got != want {
			t.Errorf("%q: %q, want %q", end, got, want)
		}
	}
}
