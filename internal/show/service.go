package show

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/deploy"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/text"
)

// Service prints how the service is doing; version is that of this binary.
func Service(con *console.Console, st deploy.State, version string) {
	style := map[string]string{deploy.StateRunning: console.Green, deploy.StateStopped: console.Dim,
		deploy.StateAbsent: console.Dim, deploy.StateFailed: console.Red, deploy.StateLooping: console.Red}[st.State]
	style = cmp.Or(style, console.Yellow)
	head := con.Paint(style, st.State)
	if !st.Since.IsZero() && st.State != deploy.StateAbsent {
		head += " for " + render.Ago(con.Now().Sub(st.Since).Round(time.Second))
	}
	if st.PID > 0 {
		head += ", pid " + strconv.Itoa(st.PID)
	}
	if st.Restarts > 0 {
		head += ", started again " + text.Plural(st.Restarts, "time") + " after a crash"
	}
	con.Print("%s", head)
	if st.Why != "" {
		con.Print("  %s", text.Message(st.Why))
	}
	Repos(con, st.Repos, 2)
	unit(con, st, version)
}

// Repos prints which repos a daemon serves, and what is wrong with them.
func Repos(con *console.Console, all []daemon.RepoState, indent int) {
	t := &console.Table{Indent: indent, Columns: []console.Column{{}, {}, {Fit: console.Wrapped}}}
	for _, r := range all {
		word, style, why := "served", console.Green, r.Why
		switch {
		case !r.Served:
			word, style = "not served", console.Yellow
		case len(r.Health) > 0:
			word, style, why = "unwell", console.Yellow, strings.Join(r.Health, "; ")
		}
		t.Row(console.Styled(word, style), console.Styled(r.Root, console.Plain),
			console.Styled(text.Message(why), console.Dim))
	}
	con.PrintTable(t)
}

func unit(con *console.Console, st deploy.State, version string) {
	flag := ""
	if st.System {
		flag = " --system"
	}
	if st.State == deploy.StateAbsent {
		con.Note("`sluice service install%s` installs it", flag)
		return
	}
	con.Print("  begins %s, by %s (%s)", st.Begins, st.Manager, st.File)
	if st.Begins == "at login" && st.Manager == "systemd" {
		con.Note("it ends with your last login: `sluice service install --linger yes` keeps it running")
	}
	if st.Stale {
		con.Note("the unit was changed by hand: `sluice service install%s` reloads it", flag)
	}
	if st.Version != "" && st.Version != version {
		con.Note("the daemon is sluice %s and this is %s: `sluice service restart%s`; agents keep running",
			text.Line(st.Version), version, flag)
	}
	if st.State != deploy.StateRunning && st.Manager == "systemd" {
		log := "journalctl --user -u sluice"
		if st.System {
			log = "journalctl -u sluice"
		}
		con.Note("its log: %s", log)
	}
}
