package main

import (
	"context"
	"fmt"
	"strings"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/form"
	"sluice/internal/schema"
)

// answerOf makes the answer of a decision: of its -a, or asked for in the terminal where the gate wants one. An answer
// that is not valid is refused before anything is signed or decided.
func answerOf(ctx context.Context, con *console.Console, d *decision) error {
	g := d.at
	switch {
	case len(d.answer) > 0: // it was asked for already
		return nil
	case len(d.answers) > 0 && d.signed != "":
		return fault.Misused("leave -a out", "the answer is in what was signed (%s)", clean(d.signed))
	case len(d.answers) > 0 && d.outcome != engine.OutcomePass:
		return fault.Misused("leave -a out", "an answer goes with a pass, and this is %s", clean(d.outcome))
	case d.outcome != engine.OutcomePass, d.signed != "", g == nil:
		return nil
	case len(g.AnswerSchema) == 0 && len(d.answers) > 0:
		return fault.Failed("`sluice show "+clean(d.gate)+"` tells how it stands", "gate %s asks for no answer now", clean(d.gate))
	case !g.AnswerRequired && len(d.answers) == 0:
		return nil
	case d.run == "":
		return fault.Misused("say which run: --run RUN (`sluice inbox` names them)", "several runs have the gate %s, and an answer is for one", clean(d.gate))
	}
	by, err := schema.Compile(g.AnswerSchema)
	if err != nil {
		return fault.Failed("`sluice show "+clean(d.gate)+"` tells how it stands", "the schema of gate %s cannot be read: %v", clean(d.gate), err)
	}
	if len(d.answers) == 0 && con.Interactive() {
		d.answer, err = fillIn(ctx, con, d.gate, g.AnswerSchema)
		return err
	}
	given, err := by.Given(d.answers)
	if err == nil {
		d.answer, err = schema.Encode(given, engine.MaxAnswer)
	}
	if err == nil {
		d.answer, err = by.Person(d.answer)
	}
	if err != nil {
		return fault.Failed("give it as in: "+engine.Verb(d.gate, d.outcome)+" "+by.Example(), "nothing was decided: %s", oneLine(err.Error()))
	}
	return nil
}

// fillIn asks for the properties of an answer, a line each.
func fillIn(ctx context.Context, con *console.Console, gate string, by []byte) ([]byte, error) {
	f, err := form.New(by)
	if err != nil {
		return nil, err
	}
	con.Print("%s", con.Paint(console.Dim, clean(gate)+" asks for an answer: Enter takes what stands in brackets, Ctrl-C decides nothing."))
	for !f.Done() {
		fmt.Fprintf(con.Out, "%s ", con.Paint(console.Bold, f.Question()+":"))
		line, err := lineUntil(ctx, con)
		if err != nil {
			fmt.Fprintln(con.Out)
			return nil, fault.Failed("the gate goes on asking", "nothing was decided: the answer was not given")
		}
		if why := f.Take(line); why != "" {
			con.Print("%s", con.Paint(console.Yellow, why))
		}
	}
	answer, err := f.Answer()
	if err != nil {
		return nil, fault.Failed("answer again: "+engine.Verb(gate, engine.OutcomePass), "nothing was decided: %s", oneLine(err.Error()))
	}
	return answer, nil
}

// lineUntil is readLine until ctx ends: Ctrl-C is no answer.
func lineUntil(ctx context.Context, con *console.Console) (string, error) {
	type read struct {
		line string
		err  error
	}
	got := make(chan read, 1)
	go func() { // it ends with the next line, or with the process
		line, err := con.ReadLine()
		got <- read{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-got:
		return strings.TrimRight(r.line, "\r\n"), r.err
	}
}
