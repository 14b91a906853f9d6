package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// TestError: the whole sentence, and the cause and the advice of it, also behind the words of who passed it on.
func TestError(t *testing.T) {
	inner := New("chmod 600", "%s: %w", "f", fs.ErrPermission)
	for _, c := range []struct {
		err                error
		says, what, advice string
	}{
		{inner, "f: permission denied: chmod 600", "f: permission denied", "chmod 600"},
		{fmt.Errorf("keys: %w", inner), "keys: f: permission denied: chmod 600", "keys: f: permission denied", "chmod 600"},
		{fmt.Errorf("%w: nothing was decided", inner), "f: permission denied: chmod 600: nothing was decided", "f: permission denied: chmod 600: nothing was decided", ""},
		{New("see x", "outer: %w", inner), "outer: f: permission denied: chmod 600: see x", "outer: f: permission denied: chmod 600", "see x"},
		{At("c.yaml", 3, 1, "no key %q", "x"), `c.yaml:3:1: no key "x"`, `c.yaml:3:1: no key "x"`, ""},
		{&Error{File: "c.yaml", Line: 3, Cause: "looser", Advice: "remove it"}, "c.yaml:3: looser: remove it", "c.yaml:3: looser", "remove it"},
		{&Error{File: "c.yaml", Cause: "looser"}, "c.yaml: looser", "c.yaml: looser", ""},
		{errors.New("a: b c: d e"), "a: b c: d e", "a: b c: d e", ""}, // nobody counts colons
	} {
		what, advice := Split(c.err)
		if c.err.Error() != c.says || what != c.what || advice != c.advice {
			t.Errorf("%q: %q, %q", c.err, what, advice)
		}
	}
	if !errors.Is(inner, fs.ErrPermission) {
		t.Error("what it came from is lost")
	}
}

// TestCodes: a command's errors have their exit code, those of the packages below have none.
func TestCodes(t *testing.T) {
	for code, err := range map[int]error{0: New("", "x"), ExitFailed: Failed("", "x"), ExitUsage: Misused("", "x")} {
		var e *Error
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("%+v: want %d", err, code)
		}
	}
}
