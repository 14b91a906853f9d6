package show

import (
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/internal/console"
)

// A worker that is sent nothing is listed with the reason and its release.
func TestWorkerOfAnotherRelease(t *testing.T) {
	t.Parallel()
	out, errs := &window{}, &window{}
	con := &console.Console{Out: out, Err: errs, Now: time.Now}
	c := &daemon.Cluster{Journal: "j", Machine: "m", Workers: []daemon.Worker{{ID: "00112233445566ff", Name: "far\x1b[2J",
		Version: "v9\x1b[2J", Labels: []string{"linux"}, Slots: 2, Since: time.Now(), Foreign: "it speaks version 7"}}}
	if err := Workers(con, c); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "gets no steps: it speaks version 7 (its release: v9") ||
		!strings.Contains(got, "0 of 2 busy") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
