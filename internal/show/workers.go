package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/render"
	"sluice/internal/text"
)

// Workers prints who does steps for this machine, and which.
func Workers(con *console.Console, c *daemon.Cluster) error {
	if c == nil || c.Machine == "" {
		return fault.Failed("start `sluice daemon --cluster URLS`",
			"no daemon serves this repo in a cluster, so it has no workers")
	}
	if con.JSON {
		return con.Document(map[string]any{"workers": append([]daemon.Worker{}, c.Workers...), "desk": c.Desk})
	}
	if len(c.Workers) == 0 {
		con.Print("no workers: start one in a clone: sluice worker --cluster URLS --journal %s --labels LABELS", c.Journal)
	}
	age := func(at time.Time) string { return render.Ago(con.Now().Sub(at)) }
	for _, w := range c.Workers {
		busy := 0
		for _, l := range w.Launches {
			if !l.Ended {
				busy++
			}
		}
		state := ""
		switch {
		case w.Draining && len(w.Launches) == 0:
			state = ", drained"
		case w.Draining:
			state = ", draining"
		}
		con.Print("%s  %s  %s  %d of %d busy%s, there for %s", w.ID, text.Line(w.Name), strings.Join(w.Labels, ","), busy,
			w.Slots, state, age(w.Since))
		if w.Foreign != "" {
			con.PrintWrapped(2, console.Styled(fmt.Sprintf("gets no steps: %s (its release: %s)", w.Foreign,
				cmp.Or(text.Line(w.Version), "unknown")), console.Yellow))
		}
		if w.Twin != "" {
			con.PrintWrapped(2, console.Styled(fmt.Sprintf("gets no steps: another worker, on %s, has its id, as a clone of "+
				"its machine has: stop one, remove the folder worker from its repo's state folder, and start it again",
				text.Line(w.Twin)), console.Yellow))
		}
		if w.Stalled != "" {
			con.PrintWrapped(2, console.Styled("waits, to store a result or to read an order: "+text.Message(w.Stalled),
				console.Yellow))
		}
		for _, l := range w.Launches {
			did := "for"
			if l.Ended {
				did = "has ended, begun"
			}
			con.Print("  %s  %s %s", text.Line(l.Key), did, age(l.Since))
		}
	}
	if c.Desk != "" {
		con.Print("what this machine asks of workers is signed: start them with --desk %s", c.Desk)
	}
	return nil
}
