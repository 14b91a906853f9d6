package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sluice/internal/atomicfile"
	"sluice/tools/conform"
)

// TestFormatLosesNothing: what is written into a task file while fmt is at work on it is there afterwards.
func TestFormatLosesNothing(t *testing.T) {
	conform.Rule(t, "001 cli.fmt", "300 writes beside it")
	if runtime.GOOS != "linux" {
		t.Skip("kernel: two files exchanged in one step")
	}
	file := filepath.Join(t.TempDir(), "to-do.json")
	write := func(n int) {
		if err := atomicfile.Write(file, fmt.Appendf(nil, `{"tasks": [{"id": "T1", "n": %d}]}`, n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		a := newApp(nil, strings.NewReader(""), &bytes.Buffer{}, io.Discard)
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := formatTasks(a, file, false); err != nil && !strings.Contains(err.Error(), "keeps changing") {
				done <- err
				return
			}
		}
	}()
	for n := 1; n <= 300; n++ {
		if write(n); n%4 != 0 { // several in a row, so that they come into fmt's way
			continue
		}
		want, there := fmt.Sprintf(`"n": %d`, n), false
		for until := time.Now().Add(10 * time.Second); !there && time.Now().Before(until); {
			data, err := os.ReadFile(file)
			there = err == nil && strings.Contains(string(data), want+"\n") // formatted, and of the last write
		}
		if !there {
			data, _ := os.ReadFile(file)
			t.Fatalf("the write %d is lost: %s", n, data)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
