package show

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/console"
)

// TestTailOfNothing: an empty output prints no line.
func TestTailOfNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	con := console.New(nil, strings.NewReader(""), &out, io.Discard)
	if err := Tail(t.Context(), con, file, 10, false, PlainLine, nil); err != nil || out.Len() > 0 {
		t.Errorf("%q %v", out.String(), err)
	}
}

// TestTailOfASilentLaunch: it has no file, and followed, what it prints at last is printed.
func TestTailOfASilentLaunch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	var out strings.Builder
	con := console.New(nil, strings.NewReader(""), &out, io.Discard)
	if err := Tail(t.Context(), con, file, 10, false, PlainLine, nil); err != nil || out.Len() > 0 {
		t.Errorf("%q %v", out.String(), err)
	}
	asked := 0
	over := func() bool {
		if asked++; asked == 1 {
			if err := os.WriteFile(file, []byte("at last\n"), 0o600); err != nil {
				t.Error(err)
			}
			return false
		}
		return true
	}
	if err := Tail(t.Context(), con, file, 10, true, PlainLine, over); err != nil || out.String() != "at last\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}

// TestTailIsHeldUpByNothing: a pipe in the place of an agent's output does not block its reader.
func TestTailIsHeldUpByNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	con := console.New(nil, strings.NewReader(""), io.Discard, io.Discard)
	done := make(chan error, 1)
	go func() {
		done <- Tail(t.Context(), con, file, 10, false, func(l string) []string { return []string{l} }, nil)
	}()
	select {
	case err := <-done:
		if !errors.Is(err, atomicfile.ErrNotRegular) {
			t.Errorf("%v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it is held up")
	}
}

// TestTailMarksWhatLooksLikeOurs: an agent that prints a line as `tail -f` tells what it shows does not pass for it.
func TestTailMarksWhatLooksLikeOurs(t *testing.T) {
	say := markLookalikes(PlainLine)
	for raw, want := range map[string]string{
		"── w-1 completed":           "| ── w-1 completed",
		"  \x1b[2m── w-1/a.2\x1b[0m": "| ── w-1/a.2",
		"—— w-1 completed":           "| —— w-1 completed",
		"━━ w-1 completed":           "| ━━ w-1 completed",
		"── ":                        "──",
		"────────":                   "────────",
		"— then the tests":           "— then the tests",
		"-- a comment":               "-- a comment",
		"it said ── w-1 completed":   "it said ── w-1 completed",
	} {
		if got := say(raw); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}
