package main

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
	"sluice/internal/workspace"
)

// decideHere lets the person at the terminal decide what was shown, by a key: the round that was shown, and no other.
func decideHere(ctx context.Context, a *app, p *workspace.Workspace, sh *show.Shown) error {
	g := sh.Gate
	if inAttempt(&a.Console) != nil || g == nil || g.State != engine.OnHuman && g.State != engine.OnWindow {
		return nil
	}
	h := &hand{a: a}
	several := false // the last keys came at once, and that was said
	for {
		if !several {
			fmt.Fprintf(a.Out, "\n%s ", a.Paint(console.Bold, keysHere(sh)+"  any other key: later"))
		}
		k, err := h.key("keys")
		if err != nil {
			return nil //nolint:nilerr // the terminal was closed: nothing was decided
		}
		if h.guard.Several() {
			if !several {
				fmt.Fprintf(a.Out, "\n%s ", a.Paint(console.Dim, h.guard.Ends("keys")))
			}
			several = true
			continue
		}
		several = false
		fmt.Fprintln(a.Out)
		d := decision{gate: g.ID, run: sh.Run, round: g.Round}
		switch {
		case k == "d":
			err = show.PrintDiff(ctx, &a.Console, p, sh)
		case k == "s" && sh.Attempt != nil && sh.Attempt.N > 1:
			err = show.PrintSince(ctx, &a.Console, p, sh)
		case outcomeHere(g, k) != "":
			d.outcome, d.text, d.answer = h.decides(ctx, sh, outcomeHere(g, k))
		default:
			a.Print("%s", a.Paint(console.Dim, "nothing was decided"))
			return nil
		}
		if err != nil {
			a.Note("%s", oneLine(err.Error()))
		}
		if d.outcome != "" {
			return giveDecision(ctx, &a.Console, p, d)
		}
	}
}

// outcomeHere is what a key says at a gate; "" = nothing.
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

// keysHere names the keys that do something.
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

// hand is a person's keys at the terminal.
type hand struct {
	a       *app
	guard   press.Guard
	decoder press.Decoder
}

// key waits for a key, with what it may decide on the screen; the letter is small.
func (h *hand) key(what string) (k string, err error) {
	h.guard.Draw(what, h.a.Now())
	in, _ := console.Terminal(h.a.In)
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return "", err
	}
	fmt.Fprint(h.a.Out, press.PasteOn)
	defer func() {
		fmt.Fprint(h.a.Out, press.PasteOff)
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
			h.guard.Read(k, len(keys) == 1 && !key.Pasted, h.a.Now())
		}
	}
	return k, nil
}

// decides has a decision ended that a key begins: a pass by Enter, the others by words. "" = nothing was decided.
func (h *hand) decides(ctx context.Context, sh *show.Shown, outcome string) (decided, text string, answer []byte) {
	a := h.a
	why := h.guard.Begin("keys")
	if why != "" {
		a.Print("%s", a.Paint(console.Dim, why))
		return "", "", nil
	}
	if outcome != engine.OutcomePass {
		began := a.Now()
		text, err := askWhy(&a.Console)
		if err != nil {
			why = "no reason was given"
		} else if a.Now().Sub(began) < press.Shown {
			why = "the words came in one go with the key"
		}
		if why == "" {
			return outcome, text, nil
		}
		a.Print("%s", a.Paint(console.Dim, "nothing was decided: "+why))
		return "", "", nil
	}
	if g := sh.Gate; g.AnswerRequired {
		var err error
		if answer, err = fillIn(ctx, &a.Console, g.ID, g.AnswerSchema); err != nil {
			a.Note("%s", oneLine(err.Error()))
			return "", "", nil
		}
	}
	if why = h.confirms(sh, answer); why != "" {
		a.Print("%s", a.Paint(console.Dim, "nothing was decided: "+why))
		return "", "", nil
	}
	return outcome, "", answer
}

// confirms asks whether a pass is meant, and says why it was not confirmed.
func (h *hand) confirms(sh *show.Shown, answer []byte) (why string) {
	a, g := h.a, sh.Gate
	pass := press.Pass{Run: sh.Run, Gate: g.ID, GateName: g.Name, Round: g.Round,
		Step: sh.Step, StepName: sh.StepName, Content: g.Reviewed, Answer: form.Shown(answer)}
	a.Print("%s", a.Paint(console.Yellow, pass.Question()))
	fmt.Fprintf(a.Out, "%s ", a.Paint(console.Bold, press.AnswersHere))
	k, err := h.key("sure")
	fmt.Fprintln(a.Out)
	if err != nil || k != "\r" && k != "\n" {
		return "that was not Enter"
	}
	return h.guard.Ends("sure")
}
