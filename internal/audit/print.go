package audit

import (
	"fmt"
	"strings"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
)

func unpassedWords(u Unpassed) string {
	return render.Unpassed{Where: u.Run + " " + render.Round(u.Gate, u.Round), Outcome: u.Outcome,
		Failures: u.Failures, Route: u.Route, Times: u.Times, To: u.To}.String() + render.Who(u.By)
}

// Print prints what was checked, and ends with exit code 1 if something of it is broken.
func Print(con *console.Console, list []Checked, bad bool) error {
	if con.JSON {
		if err := con.Document(map[string]any{"ok": !bad, "checked": list}); err != nil {
			return err
		}
	} else {
		for _, l := range list {
			printChecked(con, l)
		}
	}
	if bad {
		return fault.Exit(fault.ExitFailed)
	}
	return nil
}

func printChecked(con *console.Console, l Checked) {
	word, style := "ok", console.Green
	if !l.OK {
		word, style = "BROKEN", console.Red
	}
	one := "record"
	if strings.HasPrefix(l.What, layout.WorkflowDir) {
		one = "fact"
	}
	what := fmt.Sprintf("%s: %s", l.What, text.Plural(int(l.Lines), one))
	if l.Signed != "" || l.Point > 0 {
		what = fmt.Sprintf("%s: record %d, %s", l.What, l.Point, l.Signed)
	}
	if l.Sum != "" {
		what += ", sum " + l.Sum
	}
	t := &console.Table{Columns: []console.Column{{}, {Fit: console.Wrapped}}}
	t.Row(console.Styled(word, style), console.Styled(what, console.Plain))
	con.PrintTable(t)
	under := func(s, style string) { con.PrintWrapped(4, console.Styled(s, style)) }
	if l.Why != "" {
		under(text.Message(l.Why), console.Plain)
	}
	switch {
	case l.Left:
		under(fmt.Sprintf("a machine has left the cluster after epoch %d and goes on alone", l.Epoch), console.Plain)
	case l.Epoch > 0:
		under(fmt.Sprintf("several machines keep it: epoch %d", l.Epoch), console.Plain)
	}
	if l.MoreUnpassed > 0 {
		under(text.GoneOnCount(l.MoreUnpassed)+" earlier", console.Plain)
	}
	for _, u := range l.Unpassed {
		under(text.Line(unpassedWords(u)), console.Yellow)
	}
}
