package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"sluice/internal/console"
	"sluice/internal/workspace"
)

// window is a terminal of some columns; 0 = a pipe.
type window struct {
	bytes.Buffer
	columns int
}

func (w *window) Columns() int { return w.columns }

// TestConfigFitsTheTerminal: a long value is wrapped within its column or below its key, whole; in a pipe each setting is
// one line.
func TestConfigFitsTheTerminal(t *testing.T) {
	value := strings.Repeat("検索, and on ", 60) + "\x1b[2Jthe end"
	for _, width := range []int{0, 40, 80, 140} {
		out := &window{columns: width}
		con := console.New([]string{"HOME=" + t.TempDir()}, strings.NewReader(""), out, &bytes.Buffer{})
		s, err := workspace.Settings(con, "", []string{"notify.webhook.url=https://example.org/", "notify.webhook.body=" + value})
		if err != nil {
			t.Fatal(err)
		}
		if err := showSettings(con, s, nil); err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(out.String()) {
			if w := ansi.StringWidth(strings.TrimSuffix(l, "\n")); width > 0 && w > width {
				t.Errorf("at %d: %d cells: %q", width, w, l)
			}
		}
		text := strings.Join(strings.Fields(out.String()), "")
		if !strings.Contains(text, "theend") || strings.Contains(text, "\x1b") || strings.Contains(text, "…") {
			t.Errorf("at %d:\n%s", width, out)
		}
		if n := strings.Count(out.String(), "\n"); width == 0 && n != len(s.Values()) {
			t.Errorf("%d lines of %d settings", n, len(s.Values()))
		}
	}
}
