package show

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/text"
	"sluice/internal/tree"
	"sluice/internal/workspace"
)

// printCluster prints who decides for a journal that several machines keep, and how far its replicas
// are.
func printCluster(con *console.Console, c *daemon.Cluster) {
	if c == nil {
		return
	}
	who := "this machine leads"
	switch {
	case c.Machine == "":
		who = "and nothing serves this repo here: `sluice watch add`, then `sluice daemon --cluster URLS`"
	case !c.Leads && c.Left:
		who = "nobody leads; the last was " + text.Line(c.Leader)
	case !c.Leads:
		who = cmp.Or(text.Line(c.Leader), "nobody") + " leads; this machine has everything up to record " + fmt.Sprint(c.Seq)
	case !c.Holds:
		who += ", but its lease is over: nothing is started until the servers answer"
	}
	con.PrintWrapped(0, console.Styled(fmt.Sprintf("cluster: epoch %d, %s", c.Epoch, who), console.Dim))
	if c.Unread != nil {
		con.PrintWrapped(0, console.Styled(fmt.Sprintf("cluster: this release cannot read record %d of kind %s: upgrade "+
			"before it can take over", c.Unread.Seq, text.Line(c.Unread.Kind)), console.Yellow))
	}
	if c.Stalled != "" && !c.Leads { // of the leader's, printHealth says so
		con.PrintWrapped(0, console.Styled("cluster: "+text.Message(c.Stalled), console.Yellow))
	}
	printStalled(con, c.Workers)
	if len(c.Replicas) == 0 {
		return
	}
	style, copies := console.Dim, make([]string, 0, len(c.Replicas))
	for _, r := range c.Replicas {
		state := "current"
		switch {
		case r.Offline:
			state, style = "offline", console.Yellow
		case !r.Current || r.Behind > 0:
			state, style = text.Plural(int(r.Behind), "message")+" behind", console.Yellow
		}
		copies = append(copies, text.Line(r.Name)+" "+state)
	}
	con.PrintWrapped(0, console.Styled("replicas: "+strings.Join(copies, ", "), style))
}

// lateWork is what a worker returned of a launch that had been replaced: it counts for nothing, and is kept.
type lateWork struct {
	Run     string `json:"run"`
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	Launch  string `json:"launch"`
	Ref     string `json:"ref"`
	Look    string `json:"look"` // the command that shows it
}

// lateOf returns the late work of runs on several machines. What git cannot say is left out.
func lateOf(ctx context.Context, p *workspace.Workspace, st daemon.Status) (all []lateWork) {
	if st.Cluster == nil {
		return nil
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return nil
	}
	defer repo.Close()
	for _, r := range st.Runs {
		kept, _ := tree.LateOf(ctx, repo, r.ID)
		for _, l := range kept {
			all = append(all, lateWork{l.Run, l.Step, l.N, l.K, l.Ref(), l.Look()})
		}
	}
	return all
}

func printLate(con *console.Console, all []lateWork, run string) {
	for _, l := range all {
		if l.Run != run {
			continue
		}
		what := fmt.Sprintf("late: launch %s of %s, attempt %d of step %s, was replaced before its worker returned it; its "+
			"work counts for nothing and is kept: %s", l.Launch, l.Run, l.Attempt, l.Step, l.Look)
		con.PrintWrapped(2, console.Styled(what, console.Dim))
	}
}

// printStalled prints that workers wait, with what the first of them says.
func printStalled(con *console.Console, workers []daemon.Worker) {
	workers = slices.DeleteFunc(slices.Clone(workers), func(w daemon.Worker) bool { return w.Stalled == "" })
	if len(workers) == 0 {
		return
	}
	who := "worker " + text.Line(workers[0].Name) + " waits"
	if n := len(workers); n > 1 {
		who = fmt.Sprintf("%d workers wait", n)
	}
	con.PrintWrapped(0, console.Styled("cluster: "+who+", to store a result or to read an order: "+
		text.Message(workers[0].Stalled), console.Yellow))
}
