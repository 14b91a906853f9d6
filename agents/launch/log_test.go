package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAgentsLogIsBounded: a file that is full says so once.
func TestAgentsLogIsBounded(t *testing.T) {
	f := &spoken{n: map[string]int{}, summed: map[string]bool{}, size: speechMost - 10}
	path := filepath.Join(t.TempDir(), "full.jsonl")
	for n := range 5 {
		if err := f.add(path, "x/A#1.1", []Said{{Type: "message", Content: "words", N: 2*n + 1}, {Type: "message", Content: "words", N: 2*n + 2}}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if text := string(data); err != nil || strings.Count(text, "this file is full") != 1 || strings.Count(text, "\n") != 2 {
		t.Errorf("a full file goes on:\n%s", text)
	}
}
