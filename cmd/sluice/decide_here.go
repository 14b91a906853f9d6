package main

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/term"

	"sluice/engine"
	"sluice/internal/git"
)

// printSince prints what the attempt changed since the end of the one before.
func (a *app) printSince(ctx context.Context, p *place, sh *shown) error {
	if sh.Attempt == nil || sh.Attempt.N < 2 {
		return failed("--diff prints all that it changed", "there is no attempt of %s before this one", sh.Step)
	}
	repo, err := git.Open(ctx, p.root)
	if err != nil {
		return err
	}
	defer repo.Close()
	name := func(n int) string { return fmt.Sprintf("%s/%s.%d", sh.Run, sh.Step, n) }
	var shas [2]string
	for i, n := range []int{sh.Attempt.N - 1, sh.Attempt.N} {
		t := &attemptShown{name: name(n)}
		if shas[i], _, err = repo.Kept(ctx, t.name); err != nil {
			return notKept(t, err)
		}
	}
	patch, cut, err := repo.Between(ctx, shas[0], shas[1], showDiff)
	if err != nil {
		return err
	}
	a.print("")
	if len(patch) == 0 {
		a.print("%s", a.paint(dim, "nothing has changed since attempt "+fmt.Sprint(sh.Attempt.N-1)))
	}
	a.printPatch(patch)
	if cut {
		a.note("there is more: sluice attempt checkout %s %s.%d", sh.Run, sh.Step, sh.Attempt.N)
	}
	return nil
}

// decideHere lets the person at the terminal decide what was shown, by one key. What is decided is the round that was shown.
func (a *app) decideHere(ctx context.Context, p *place, sh *shown) error {
	g := sh.Gate
	if a.getenv("SLUICE_TOKEN") != "" || g == nil || g.State != engine.OnHuman && g.State != engine.OnWindow {
		return nil
	}
	human := g.State == engine.OnHuman
	for {
		keys := "v veto"
		if human {
			keys = "p pass  f fail"
		}
		keys += "  d changes"
		if sh.Attempt != nil && sh.Attempt.N > 1 {
			keys += "  s since the attempt before"
		}
		fmt.Fprintf(a.out, "\n%s ", a.paint(bold, keys+"  any other key: later"))
		k, err := a.key()
		fmt.Fprintln(a.out)
		if err != nil {
			return nil //nolint:nilerr // the terminal was closed: nothing was decided
		}
		d := decision{gate: g.ID, run: sh.Run, round: g.Round}
		switch {
		case k == 'd':
			err = a.printDiff(ctx, p, sh)
		case k == 's' && sh.Attempt != nil && sh.Attempt.N > 1:
			err = a.printSince(ctx, p, sh)
		case k == 'p' && human:
			d.outcome = engine.OutcomePass
		case k == 'f' && human:
			d.outcome = engine.OutcomeFail
		case k == 'v' && !human:
			d.outcome = engine.OutcomeVeto
		default:
			a.print("%s", a.paint(dim, "nothing was decided"))
			return nil
		}
		if err != nil {
			a.note("%s", oneLine(err.Error()))
		}
		if d.outcome == "" {
			continue
		}
		if err := a.words(&d, false); err != nil {
			return err
		}
		return a.decide(ctx, p, d)
	}
}

// key reads one key from the terminal; the letter is small. Where keys cannot be read one by one it is the first letter of
// a line.
func (a *app) key() (byte, error) {
	in, _ := terminal(a.in)
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		line, err := a.readLine()
		line = strings.ToLower(strings.TrimSpace(line))
		if err != nil || line == "" {
			return 0, err
		}
		return line[0], nil
	}
	var b [16]byte
	n, err := in.Read(b[:])
	if rerr := term.Restore(int(in.Fd()), before); err == nil {
		err = rerr
	}
	if n != 1 { // an arrow or the like
		return 0, err
	}
	return b[0] | 0x20, err
}
