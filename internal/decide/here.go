package decide

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/term"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/form"
	"sluice/internal/press"
	"sluice/internal/show"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// Here lets the person at the terminal decide the shown round, and no other, by a key.
func Here(ctx context.Context, con *console.Console, p *workspace.Workspace, sh *show.Shown) error {
	g := sh.Gate
	if InAttempt(con) != nil || g == nil || g.State != engine.OnHuman && g.State != engine.OnWindow {
		return nil
	}
	h := &hand{con: con}
	several := false // the last keys came at once, and the person was told
	for {
		if !several {
			fmt.Fprintf(con.Out, "\n%s ", con.Paint(console.Bold, keysHere(sh)+"  any other key: later"))
		}
		k, err := h.key("keys")
		if err != nil {
			return nil //nolint:nilerr // the terminal was closed: nothing was decided
		}
		if h.guard.Several() {
			if !several {
				fmt.Fprintf(con.Out, "\n%s ", con.Paint(console.Dim, h.guard.Ends("keys")))
			}
			several = true
			continue
		}
		several = false
		fmt.Fprintln(con.Out)
		d := Decision{Gate: g.ID, Run: sh.Run, Round: g.Round}
		switch {
		case k == "d":
			err = show.PrintDiff(ctx, con, p, sh)
		case k == "s" && sh.Attempt != nil && sh.Attempt.N > 1:
			err = show.PrintSince(ctx, con, p, sh)
		case outcomeHere(g, k) != "":
			d.Outcome, d.Text, d.answer = h.decides(ctx, sh, outcomeHere(g, k))
		default:
			con.Print("%s", con.Paint(console.Dim, "nothing was decided"))
			return nil
		}
		if err != nil {
			con.Note("%s", text.Message(err.Error()))
		}
		if d.Outcome != "" {
			return Give(ctx, con, p, d)
		}
	}
}

func outcomeHere(g *daemon.GateStatus, k string) string {
	human := g.State == engine.OnHuman
	switch {
	case k == "p" && human:
		return engine.OutcomePass
	case k == "f" && human:
		return engine.OutcomeFail
	case k == "v" && !human:
		return engine.OutcomeVeto
	}
	return ""
}

func keysHere(sh *show.Shown) string {
	keys := "v veto"
	if sh.Gate.State == engine.OnHuman {
		keys = "p pass  f fail"
	}
	keys += "  d changes"
	if sh.Attempt != nil && sh.Attempt.N > 1 {
		keys += "  s since the attempt before"
	}
	return keys
}

// hand reads a person's keys at the terminal.
type hand struct {
	con     *console.Console
	guard   press.Guard
	decoder press.Decoder
}

// key waits for a key that may decide what; it returns lower case.
func (h *hand) key(what string) (k string, err error) {
	h.guard.Draw(what, h.con.Now())
	in, _ := console.Terminal(h.con.In)
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return "", err
	}
	fmt.Fprint(h.con.Out, press.PasteOn)
	defer func() {
		fmt.Fprint(h.con.Out, press.PasteOff)
		if rerr := term.Restore(int(in.Fd()), before); err == nil {
			err = rerr
		}
	}()
	var b [256]byte
	for k == "" {
		n, err := in.Read(b[:])
		if err != nil {
			return "", err
		}
		keys := h.decoder.Keys(b[:n])
		for _, key := range keys {
			k = strings.ToLower(key.Text)
			h.guard.Read(k, len(keys) == 1 && !key.Pasted, h.con.Now())
		}
	}
	return k, nil
}

// decides completes a decision that a key began: a pass by Enter, the others by words. "" = nothing
// was decided.
func (h *hand) decides(ctx context.Context, sh *show.Shown, outcome string) (decided, words string, answer []byte) {
	con := h.con
	why := h.guard.Begin("keys")
	if why != "" {
		con.Print("%s", con.Paint(console.Dim, why))
		return "", "", nil
	}
	if outcome != engine.OutcomePass {
		began := con.Now()
		words, err := askWhy(con)
		if err != nil {
			why = "no reason was given"
		} else if con.Now().Sub(began) < press.Shown {
			why = "the words arrived together with the key"
		}
		if why == "" {
			return outcome, words, nil
		}
		con.Print("%s", con.Paint(console.Dim, "nothing was decided: "+why))
		return "", "", nil
	}
	if g := sh.Gate; g.AnswerRequired {
		var err error
		if answer, err = fillIn(ctx, con, g.ID, g.AnswerSchema); err != nil {
			con.Note("%s", text.Message(err.Error()))
			return "", "", nil
		}
	}
	if why = h.confirms(sh, answer); why != "" {
		con.Print("%s", con.Paint(console.Dim, "nothing was decided: "+why))
		return "", "", nil
	}
	return outcome, "", answer
}

// confirms asks for confirmation of a pass, and returns why it was not confirmed.
func (h *hand) confirms(sh *show.Shown, answer []byte) (why string) {
	con, g := h.con, sh.Gate
	pass := press.Pass{Run: sh.Run, Gate: g.ID, GateName: g.Name, Round: g.Round,
		Step: sh.Step, StepName: sh.StepName, Content: g.Reviewed, Answer: form.Shown(answer)}
	con.Print("%s", con.Paint(console.Yellow, pass.Question()))
	fmt.Fprintf(con.Out, "%s ", con.Paint(console.Bold, press.AnswersHere))
	k, err := h.key("sure")
	fmt.Fprintln(con.Out)
	if err != nil || k != "\r" && k != "\n" {
		return "that was not Enter"
	}
	return h.guard.Ends("sure")
}
