package decide

import (
	"fmt"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/form"
	"sluice/internal/schema"
	"sluice/internal/text"
)

// answerOf sets the answer of a decision: from its -a, or asked for in the terminal if the gate
// requires one. An invalid answer is refused before anything is signed or decided.
func answerOf(con *console.Console, d *Decision) error {
	g := d.at
	switch {
	case len(d.answer) > 0: // it was asked for already
		return nil
	case len(d.Answers) > 0 && d.Signed != "":
		return fault.Misused("omit -a", "the signed file has the answer (%s)", text.Line(d.Signed))
	case len(d.Answers) > 0 && d.Outcome != engine.OutcomePass:
		return fault.Misused("omit -a", "an answer belongs to a pass, and this is %s", text.Line(d.Outcome))
	case d.Outcome != engine.OutcomePass, d.Signed != "", g == nil:
		return nil
	case len(g.AnswerSchema) == 0 && len(d.Answers) > 0:
		return fault.Failed("`sluice show "+text.Line(d.Gate)+"` shows its state", "gate %s of %s asks for no answer now",
			text.Line(d.Gate), strings.Join(d.runs, ", "))
	case !g.AnswerRequired && len(d.Answers) == 0:
		return nil
	case d.Run == "":
		return d.which(", and an answer is for one run")
	}
	by, err := schema.Compile(g.AnswerSchema)
	if err != nil {
		return fault.Failed("`sluice show "+text.Line(d.Gate)+"` shows its state",
			"the schema of gate %s cannot be read: %v", text.Line(d.Gate), err)
	}
	if len(d.Answers) == 0 && con.Interactive() {
		d.answer, err = fillIn(con, d, g.AnswerSchema)
		return err
	}
	given, err := by.Given(d.Answers)
	if err == nil {
		d.answer, err = schema.Encode(given, engine.MaxAnswer)
	}
	if err == nil {
		d.answer, err = by.Person(d.answer)
	}
	if err != nil {
		return fault.Failed("give it as in: "+d.command()+" "+by.Example(), "nothing was decided: %s",
			text.Message(err.Error()))
	}
	return nil
}

// fillIn asks for the properties of an answer, one line each.
func fillIn(con *console.Console, d *Decision, by []byte) ([]byte, error) {
	f, err := form.New(by)
	if err != nil {
		return nil, err
	}
	con.Print("%s", con.Paint(console.Dim,
		text.Line(d.Gate)+" asks for an answer: Enter takes the value in brackets, Ctrl-C decides nothing."))
	for !f.Done() {
		fmt.Fprintf(con.Out, "%s ", con.Paint(console.Bold, f.Question()+":"))
		line, err := con.ReadLine()
		if err != nil { // Ctrl-C is no answer
			return nil, fault.Failed("the gate still asks", "nothing was decided: the answer was not given")
		}
		if why := f.Take(strings.TrimRight(line, "\r\n")); why != "" {
			con.Print("%s", con.Paint(console.Yellow, why))
		}
	}
	answer, err := f.Answer()
	if err != nil {
		return nil, fault.Failed("answer again: "+d.command(), "nothing was decided: %s", text.Message(err.Error()))
	}
	return answer, nil
}

// command returns the command that makes the decision.
func (d *Decision) command() string {
	named := daemon.Named(text.Line(d.Gate), text.Line(d.Run), d.Run != "")
	return engine.Verb(daemon.AtRound(named, d.Round), text.Line(d.Outcome))
}

// named returns how a command names the gate.
func (d *Decision) named() string { return daemon.Named(text.Line(d.Gate), text.Line(d.Run), d.inRun) }
