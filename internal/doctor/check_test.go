package doctor

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/internal/console"
	"sluice/internal/fault"
)

// TestFix: only what is at fault and can be fixed is asked about; without a yes nothing is done, and a fix that fails is none.
func TestFix(t *testing.T) {
	fixed := 0
	fix := func(context.Context) error { fixed++; return nil }
	checks := []Check{
		Fine("a", "well").WithFix("Fix a?", fix), Warned("b", "do b", "less well").WithFix("Fix b?", fix), Broken("c", "do c", "not at all"),
		Broken("d", "do d", "not at all").WithFix("Fix d?", func(context.Context) error { return errors.New("no rights") }),
	}
	var out, errs bytes.Buffer
	con := console.New(nil, strings.NewReader(""), &out, &errs)
	if done, err := Fix(context.Background(), con, checks); done || err != nil || fixed != 0 || !strings.Contains(errs.String(), "2 faults can be fixed here") {
		t.Errorf("without a yes: %v %v, %d fixed, %q", done, err, fixed, errs.String())
	}
	con.Yes = true
	if done, err := Fix(context.Background(), con, checks); !done || err != nil || fixed != 1 || !strings.Contains(out.String(), "no rights") {
		t.Errorf("with --yes: %v %v, %d fixed, %q", done, err, fixed, out.String())
	}
}

// TestPrint: what fails is the exit code, a warning is not; the advice stands below.
func TestPrint(t *testing.T) {
	var out bytes.Buffer
	con := console.New(nil, nil, &out, nil)
	if err := Print(con, []Check{Clock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), Warned("b", "do b", "less well")}); err != nil {
		t.Error(err)
	}
	var code fault.Exit
	if err := Print(con, []Check{Clock(time.Unix(0, 0))}); !errors.As(err, &code) || int(code) != fault.ExitFailed {
		t.Errorf("%v", err)
	}
	if got := out.String(); !strings.Contains(got, "→ do b") || !strings.Contains(got, "fail  clock") {
		t.Errorf("%q", got)
	}
}
