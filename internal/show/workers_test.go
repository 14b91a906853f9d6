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

// A worker whose id another one has is listed with the machine of the other and what to do.
func TestWorkerWithTheIDOfAnother(t *testing.T) {
	t.Parallel()
	out := &window{}
	con := &console.Console{Out: out, Err: out, Now: time.Now}
	c := &daemon.Cluster{Journal: "j", Machine: "m", Workers: []daemon.Worker{{ID: "00112233445566ff", Name: "far",
		Labels: []string{"linux"}, Slots: 2, Since: time.Now(), Twin: "copy\x1b[2J"}}}
	if err := Workers(con, c); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	if !strings.Contains(got, "gets no steps: another worker, on copy") || !strings.Contains(got, "remove the folder worker") ||
		strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

// A status names what keeps a machine from leading, each replica that is not current, and workers that
// wait. The list of workers says which wait.
func TestClusterFaults(t *testing.T) {
	t.Parallel()
	stalled := daemon.Worker{ID: "00112233445566ff", Name: "far", Labels: []string{"linux"}, Slots: 1, Since: time.Now(),
		Stalled: "the object store: no room\x1b[2J"}
	waits := "to store a result or to read an order: the object store: no room"
	for _, c := range []struct {
		of   daemon.Cluster
		want string
	}{
		{daemon.Cluster{Unread: &daemon.Unread{Seq: 7, Kind: "k\x1b[2J"}}, "cannot read record 7 of kind k"},
		{daemon.Cluster{Leads: true, Holds: true, Replicas: []daemon.Replica{{Name: "n1", Leads: true, Current: true},
			{Name: "n2", Offline: true, Behind: 3}, {Name: "n3", Behind: 2}}}, "replicas: n1 current, n2 offline, n3 2 messages behind"},
		{daemon.Cluster{Leads: true, Workers: []daemon.Worker{{Name: "well"}, stalled}}, "cluster: worker far waits, " + waits},
		{daemon.Cluster{Leads: true, Workers: []daemon.Worker{stalled, stalled}}, "cluster: 2 workers wait, " + waits},
	} {
		out := &window{}
		c.of.Machine = "m"
		printCluster(&console.Console{Out: out, Err: out, Now: time.Now}, &c.of)
		got := strings.Join(strings.Fields(out.String()), " ")
		if !strings.Contains(got, c.want) || strings.Contains(got, "\x1b") || strings.Contains(got, "well") {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	out := &window{}
	con := &console.Console{Out: out, Err: out, Now: time.Now}
	if err := Workers(con, &daemon.Cluster{Machine: "m", Workers: []daemon.Worker{stalled}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "  waits, "+waits) || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
