package show

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/form"
	"sluice/internal/layout"
	"sluice/internal/press"
	"sluice/internal/render"
	"sluice/internal/schema"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// Print prints everything but the changes.
func Print(con *console.Console, sh *Shown) {
	printTitle(con, sh)
	if sh.Stubbed {
		con.Field("note", con.Paint(console.Yellow, render.StubWords))
	}
	if sh.For != "" {
		con.Text("for", sh.For)
	}
	con.Field("step", text.Title(sh.Step, sh.StepName))
	con.Text("task", sh.Task)
	for _, c := range sh.Criteria {
		con.Field("done when", c)
	}
	for _, n := range sh.Notes {
		con.Text(fmt.Sprintf("note %d", n.N), n.Text+"  ("+n.By.Who+")")
	}
	if at := sh.Attempt; at != nil {
		printAttempt(con, sh, at)
	}
	for _, line := range render.TaskLines(sh.Tasks) {
		con.Field("", line)
	}
	printChanged(con, sh)
	printVerdicts(con, sh)
	if u := sh.Unread; u != nil {
		con.Text("its reply", cmp.Or(u.End, "(empty)"))
		con.Field("", "the whole reply: "+layout.ShortPath(u.File))
	}
	printEarlier(con, sh)
	if sh.Files != "" {
		con.Field("files", layout.ShortPath(sh.Files))
	}
	if g := sh.Gate; g != nil && g.Trust == engine.TrustSigned {
		who := "anyone in `sluice keys ls`"
		if len(g.Approvers) > 0 {
			who = strings.Join(g.Approvers, " or ")
		}
		con.Field("signed by", text.Line(who)+"; sluice pass, fail and veto sign")
	}
	if g := sh.Gate; g != nil && g.State == engine.OnHuman {
		con.Print("\nDecide: %s", decideWords(*g, daemon.Named(g.ID, sh.Run, true)))
	} else if g != nil && g.State == engine.OnWindow {
		con.Print("\nIt passes by itself in %s: sluice veto %s -m \"…\" stops it", render.Ago(g.Until.Sub(con.Now())),
			daemon.Named(g.ID, sh.Run, true))
	}
}

// maxNames limits what is shown of the names of protected files, in characters: nearly nothing is cut.
const maxNames = 1 << 20

// printTitle prints what it is, how it stands, and who else asks.
func printTitle(con *console.Console, sh *Shown) {
	g := sh.Gate
	if g == nil {
		con.Title("%s of %s%s", text.Title(sh.Step, sh.StepName), sh.Run, render.UnheldMark(sh.Trust))
		return
	}
	round := ""
	if g.Round > 0 {
		round = fmt.Sprintf(", round %d", g.Round)
	}
	con.Title("%s of %s%s: %s%s", text.Title(g.ID, g.Name), sh.Run, round, render.GateState(*g),
		render.UnheldMark(sh.Trust))
	if g.Why != "" {
		con.Field("why you", render.Why(g.Why))
	}
	if len(sh.Also) > 0 {
		con.Field("also", fmt.Sprintf("it asks in %s too: sluice show %s --run RUN", text.JoinMost(sh.Also), g.ID))
	}
}

// printEarlier prints the rounds that did not pass before.
func printEarlier(con *console.Console, sh *Shown) {
	for i, q := range sh.Earlier {
		con.Text(fmt.Sprintf("round %d", q.N),
			render.Because(render.Failed(q.Outcome, q.Veto)+" by "+render.By(q.ByKind, q.By), text.Brief(q.Feedback)))
		if q.Said != q.Feedback {
			con.Text("before", q.Said)
		}
		if i == len(sh.Earlier)-1 && len(sh.Since) > 0 {
			printSince(con, sh.Since)
		} else {
			printFindings(con, q)
		}
	}
}

func (sh *Shown) named(id string) string {
	at := workspace.Shown(sh.runs, id)
	return daemon.Named(id, sh.Run, sh.For != "" || len(sh.Also) > 0 || at != "" && at != sh.Run)
}

// decideWords returns what a person may type at a gate that commands name so.
func decideWords(g daemon.GateStatus, named string) string {
	at := daemon.AtRound(named, g.Round)
	pass := "sluice pass " + at
	if s, err := schema.Compile(g.AnswerSchema); g.AnswerRequired && err == nil {
		pass += " " + text.Line(s.Example())
	}
	out := []string{pass, "sluice fail " + named + " -m \"…\""}
	for _, o := range g.Outcomes {
		if o != engine.OutcomePass && !engine.Refuses(o) {
			out = append(out, engine.Verb(at, o))
		}
	}
	return strings.Join(out, "  ·  ")
}

func printAttempt(con *console.Console, sh *Shown, at *engine.Attempt) {
	s := fmt.Sprintf("%d, %s", at.N, at.State)
	if !at.Launched.IsZero() {
		end := at.Ended
		if end.IsZero() {
			end = con.Now()
		}
		s += ", " + render.Ago(end.Sub(at.Launched))
	}
	if g := sh.Gate; g != nil && g.Reviewed != "" && sh.isJudged(at) {
		s += ", content " + press.Content(g.Reviewed) // as in the question before a pass
	}
	if at.Restarts > 0 {
		s += fmt.Sprintf(", launched again %d×", at.Restarts)
	}
	if at.N < sh.Newest {
		s += fmt.Sprintf("; `sluice show %s` has attempt %d", sh.named(sh.Step), sh.Newest)
	}
	con.Field("attempt", s)
	if at.Held != nil {
		con.Field("held", "taken over"+render.Who(at.Held)+": sluice handback "+daemon.Named(sh.Step, sh.Run, true))
	}
	if at.Status != "" && render.OwnWord(at.Via, at.Broken) {
		con.Text("it says", render.Because(at.Status, at.Summary))
	}
	con.Text("it asks", render.Because(at.Question, strings.Join(at.Options, " | ")))
	if len(at.Answer) > 0 {
		con.Text("answer", Readable(at.Answer))
	}
	switch {
	case at.Failure != "":
		con.Text("failed", at.Failure)
	case at.Broken != "":
		printBroken(con, sh, at)
	case at.Checked && len(sh.Criteria) > 0:
		con.Field("criterion", heldWords(sh, at))
	}
	for _, c := range sh.Checked {
		if strings.Contains(at.Failure, strings.TrimSpace(c.Output)) {
			continue // it is printed already
		}
		lines := strings.Split(strings.TrimSpace(text.CleanLines(c.Output, maxOutput)), "\n")
		if more := len(lines) - maxLines; more > 0 {
			lines = append([]string{fmt.Sprintf("… %d lines before", more)}, lines[more:]...)
		}
		con.Text("printed", strings.Join(lines, "\n"))
	}
	if at.Unshipped > 0 {
		con.Field("judged", text.Unshipped(at.Unshipped))
	}
	if len(at.Protected) > 0 {
		con.Field("protected", "changed: "+text.Clean(strings.Join(at.Protected, ", "), maxNames))
	}
	if sh.Usage != (engine.Usage{}) {
		con.Field("cost", fmt.Sprintf("%d tokens, %.2f USD", sh.Usage.Tokens, sh.Usage.CostUSD))
	}
}

func printBroken(con *console.Console, sh *Shown, at *engine.Attempt) {
	con.Text("broken", at.Broken)
	switch {
	case sh.Untaken:
		con.Field("not taken", "what it changed is in no commit: a pass goes on without it")
	case len(sh.Criteria) > 0 && !at.Checked:
		con.Field("criterion", "not checked: a pass takes the work as it is")
	}
}

// isJudged reports whether the newest round of the shown gate is about the attempt.
func (sh *Shown) isJudged(at *engine.Attempt) bool {
	n := len(sh.Gate.Rounds)
	return n == 0 || sh.Gate.Rounds[n-1].Attempt == at.N
}

// heldWords returns how the criteria of a checked attempt stand.
func heldWords(sh *Shown, at *engine.Attempt) string {
	if len(at.ToReview) == 0 {
		return "holds"
	}
	words := "for a reviewer: "
	if sh.nobody {
		words = "nobody judges: "
	}
	if sh.machine {
		words = "the machine's checks passed; " + words
	}
	return words + strings.Join(at.ToReview, "; ")
}

func printChanged(con *console.Console, sh *Shown) {
	if sh.recorded && len(sh.Changed) == 0 {
		con.Field("changed", "nothing")
	}
	printFiles(con, "changed", sh.Changed, 0)
	for _, f := range sh.Beside {
		con.Field("", text.Line(text.Name(f.Path))+" is judged too, but not shipped")
	}
	for _, f := range sh.Law {
		con.Field("", text.Line(text.Name(f.Path))+" decides too, has changed, and is not shipped")
	}
	var hidden []string
	for _, f := range sh.Hidden {
		hidden = append(hidden, text.Name(f.Path)+" is not shipped: only ignore rules of this run hide it")
	}
	printFiles(con, "hidden", hidden, sh.More)
	if len(sh.Changed) > 0 {
		more := "sluice show " + sh.named(sh.Step) + " --diff prints the changes"
		if sh.Again() {
			more += ", --since those since the attempt before"
		}
		con.Field("", con.Paint(console.Dim, more))
	}
}

// printFiles prints a label before the first of some files, and how many there are beside those that are listed.
func printFiles(con *console.Console, label string, files []string, more int) {
	for _, f := range files[:min(len(files), maxFiles)] {
		con.Field(label, text.Line(text.Name(f)))
		label = ""
	}
	if n := len(files) + more - maxFiles; n > 0 {
		con.Field("", fmt.Sprintf("… and %d more", n))
	}
}

func printVerdict(con *console.Console, sh *Shown, g *daemon.GateStatus) {
	con.Text("look for", sh.LookFor)
	if len(g.AnswerSchema) > 0 && g.AnswerRequired {
		if f, err := form.New(g.AnswerSchema); err == nil {
			con.Text("asks for", strings.Join(f.Questions(), "\n"))
		}
	}
	if len(g.Answer) > 0 {
		con.Text("answer", Readable(g.Answer))
	}
	if len(g.Rounds) == 0 {
		return
	}
	q := g.Rounds[len(g.Rounds)-1]
	if sh.Attempt != nil && !sh.isJudged(sh.Attempt) {
		con.Field("judged", fmt.Sprintf("attempt %d, as follows", q.Attempt))
	}
	switch {
	case q.Outcome != "" && sh.Attempt != nil && q.Feedback == sh.Attempt.Failure: // which is printed already
		con.Text("verdict", verdictWords(q))
	case q.Outcome != "":
		con.Text("verdict", render.Because(verdictWords(q), q.Feedback))
	default:
		con.Text("feedback", q.Feedback)
	}
	if q.Read != "" {
		con.Field("read from", q.Read)
	}
	con.Text("no verdict", q.MissWhy)
	var said struct {
		Summary string `json:"summary"`
	}
	if json.Unmarshal(q.Answer, &said) == nil {
		con.Text("summary", said.Summary)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Scores)) {
		con.Text("score", fmt.Sprintf("%s %g", name, q.Scores[name]))
	}
	printFindings(con, q)
	then := ", then the gate asks you"
	if g.Level == engine.LevelHuman { // which it always does
		then = ""
	}
	if g.Count > 0 {
		con.Field("failures", fmt.Sprintf("%d of %d%s", g.Count, g.Max, then))
	}
	for _, name := range slices.Sorted(maps.Keys(g.Routes)) {
		con.Field("route", fmt.Sprintf("%s %d of %d%s", name, g.Routes[name], g.Max, then))
	}
}

// Readable formats JSON for people: a line per value, without escaped characters.
func Readable(raw json.RawMessage) string {
	var v any
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if json.Unmarshal(raw, &v) != nil || out.Encode(v) != nil {
		return string(raw)
	}
	return text.Controls(strings.TrimSpace(b.String()))
}
