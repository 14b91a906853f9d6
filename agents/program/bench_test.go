package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recorded returns the lines of all recordings of a format's real program.
func recorded(b *testing.B, format string) (lines [][]byte, size int64) {
	b.Helper()
	files, err := filepath.Glob("testdata/" + format + "-*.json")
	if err != nil || len(files) == 0 {
		b.Fatalf("no recordings of %s: %v", format, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		var r struct {
			Stdout []string `json:"stdout"`
		}
		if err := json.Unmarshal(data, &r); err != nil {
			b.Fatal(err)
		}
		for _, l := range r.Stdout {
			if strings.HasPrefix(l, "{") {
				lines, size = append(lines, []byte(l)), size+int64(len(l))
			}
		}
	}
	return lines, size
}

// BenchmarkStream reads what the real programs printed, beside json.Unmarshal of the same lines
// into maps.
func BenchmarkStream(b *testing.B) {
	for _, format := range []string{Claude, Codex} {
		lines, size := recorded(b, format)
		b.Run(format+"/reader", func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(format, time.Now)
				for _, l := range lines {
					r.Line(l)
				}
			}
		})
		b.Run(format+"/unmarshal", func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				for _, l := range lines {
					var v map[string]any
					if err := json.Unmarshal(l, &v); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
