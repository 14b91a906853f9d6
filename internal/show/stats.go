package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/stats"
	"sluice/internal/text"
)

// statsDays is how many days the table of days has: the newest.
const statsDays = 14

// Stats prints what a journal counts up to.
func Stats(con *console.Console, s stats.Stats) {
	stubbed := ""
	if s.Stubbed > 0 {
		stubbed = con.Paint(console.Dim, "  ("+text.Plural(s.Stubbed, "run")+" with stubs not counted)")
	}
	if s.From.IsZero() {
		con.Print("Nothing has run in this time.%s", stubbed)
		return
	}
	r := s.Runs
	day := func(t time.Time) string { return t.Local().Format(time.DateOnly) }
	all := text.Plural(r.Completed+r.Failed+r.Aborted+r.Live, "run")
	con.Print("%s  %s to %s%s", con.Paint(console.Bold, all), day(s.From), day(s.To), stubbed)
	con.Print("  %d completed, %d failed, %d aborted, %d live%s", r.Completed, r.Failed, r.Aborted, r.Live,
		timesWords("; each took", r.Times))
	if s.People.Count > 0 {
		con.Print("  %s waited for a person%s, %s in all", text.Plural(s.People.Count, "round"),
			timesWords("", s.People), ago(s.People.Sum))
	}
	gateTable(con, s.Gates)
	stepTable(con, s.Steps)
	usedTable(con, "Role", s.Roles)
	usedTable(con, "Day", s.Days[max(len(s.Days)-statsDays, 0):])
	for _, a := range s.Advice {
		cost := ""
		for _, g := range s.Gates {
			if g.Workflow == a.Workflow && g.Gate == a.Gate {
				cost = costWords(g)
			}
		}
		con.Print("%s gate %s of %s %s%s", con.Paint(console.Yellow, "note:"),
			text.Line(a.Gate), text.Line(a.Workflow), a.Text, cost)
	}
}

// costWords returns what a gate has cost: its reviewers' use, and people's time.
func costWords(g stats.Gate) string {
	parts := []string{}
	if used := render.SpentShort(g.Reviews, engine.Usage{}); used != "" {
		parts = append(parts, used)
	}
	if g.Time > 0 {
		parts = append(parts, ago(g.Time)+" of reviews")
	}
	if g.People.Sum > 0 {
		parts = append(parts, ago(g.People.Sum)+" of waiting for a person")
	}
	if len(parts) == 0 {
		return ""
	}
	return "; it cost " + strings.Join(parts, ", ")
}

func timesWords(what string, t stats.Times) string {
	if t.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%s: median %s, longest %s", what, ago(t.Median), ago(t.Most))
}

func ago(d engine.Duration) string { return render.Ago(time.Duration(d)) }

func gateTable(con *console.Console, gates []stats.Gate) {
	if len(gates) == 0 {
		return
	}
	names := []string{"Gate", "rounds", "passed", "failed", "routed", "vetoes", "overridden", "person", "reviews"}
	some := []bool{true, true, true, true, false, false, false, false, false}
	for _, g := range gates {
		used := render.SpentShort(g.Reviews, engine.Usage{}) != ""
		for i, is := range []bool{g.Routed > 0, g.Vetoes > 0, g.Overridden > 0, g.People.Count > 0, used} {
			some[4+i] = some[4+i] || is
		}
	}
	t := heads(kept(names, some)...)
	for _, g := range gates {
		failed := number(0)
		if g.Failed > 0 {
			failed = console.Styled(fmt.Sprint(g.Failed), console.Yellow)
		}
		person := "-"
		if g.People.Count > 0 {
			person = fmt.Sprintf("%d× %s", g.People.Count, ago(g.People.Median))
		}
		t.Row(kept([]console.Cell{name(g.Workflow, g.Gate), number(g.Rounds), number(g.Passed), failed,
			number(g.Routed), number(g.Vetoes), number(g.Overridden), console.Styled(person, ""),
			console.Styled(cmp.Or(render.SpentShort(g.Reviews, engine.Usage{}), "-"), "")}, some)...)
	}
	con.Print("")
	con.PrintTable(t)
}

// kept returns the columns of a row that have something in some row.
func kept[T any](all []T, some []bool) (out []T) {
	for i, v := range all {
		if some[i] {
			out = append(out, v)
		}
	}
	return out
}

func stepTable(con *console.Console, steps []stats.Step) {
	if len(steps) == 0 {
		return
	}
	t := heads("Step", "attempts", "passed", "median", "longest")
	for _, s := range steps {
		median, most := "-", "-"
		if s.Times.Count > 0 {
			median, most = ago(s.Times.Median), ago(s.Times.Most)
		}
		t.Row(name(s.Workflow, s.Step), number(s.Attempts), number(s.Passed),
			console.Styled(median, ""), console.Styled(most, ""))
	}
	con.Print("")
	con.PrintTable(t)
}

func usedTable(con *console.Console, head string, all []stats.Used) {
	if len(all) == 0 {
		return
	}
	t := heads(head, "launches", "time", "tokens", "USD")
	for _, u := range all {
		cost := "-"
		if u.CostUSD > 0 {
			cost = fmt.Sprintf("%.2f", u.CostUSD)
		}
		t.Row(console.Styled(text.Line(u.Name), ""), number(u.Launches), console.Styled(ago(u.Time), ""),
			number(int(u.Tokens)), console.Styled(cost, ""))
	}
	con.Print("")
	con.PrintTable(t)
}

func heads(names ...string) *console.Table {
	t := &console.Table{}
	var cells []console.Cell
	for _, n := range names {
		cells = append(cells, console.Styled(n, console.Dim))
	}
	t.Row(cells...)
	return t
}

func name(workflow, id string) console.Cell { return console.Styled(text.Line(workflow+"/"+id), "") }

func number(n int) console.Cell {
	if n == 0 {
		return console.Styled("-", console.Dim)
	}
	return console.Styled(fmt.Sprint(n), "")
}
