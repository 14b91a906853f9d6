package decide

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/findings"
	"sluice/internal/layout"
	"sluice/internal/personal"
	"sluice/internal/press"
	"sluice/internal/review"
	"sluice/internal/show"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// Written is what a person wrote about the changes of a round.
type Written struct {
	Text     string
	Findings json.RawMessage // the comments on lines; nil if there are none
	Draft    string          // the file on which they were written: Discard it once the answer is given
}

// Review has the person comment, in their editor, on the changes that the shown round judges. The
// editor has the terminal until it is closed. An error decides nothing; it says where the file is, if
// anything was written, and the next Review of the round opens that file again.
func Review(ctx context.Context, con *console.Console, p *workspace.Workspace, sh *show.Shown,
	outcome string) (w Written, err error) {
	repo, err := p.Open(ctx)
	if err != nil {
		return w, err
	}
	defer repo.Close()
	patch, cut, err := show.Patch(ctx, repo, sh, show.Diff{Most: show.MaxPatch})
	if err != nil {
		return w, err
	}
	if len(patch) == 0 {
		return w, fault.Failed("give the reason with -m", "there are no changes to comment on")
	}
	title := fmt.Sprintf("%s, round %d of %s", text.Title(sh.Gate.ID, sh.Gate.Name), sh.Gate.Round, sh.Run)
	if sh.Gate.Reviewed != "" {
		title += ", content " + press.Content(sh.Gate.Reviewed)
	}
	sheet := review.New(review.About{Title: text.Line(title), Outcome: outcome, Cut: cut}, patch)
	fresh := sheet.Text("")
	before, err := draft(con, p, sh, outcome, fresh, &w)
	if err != nil {
		return w, err
	}
	for {
		if err := personal.Edit(ctx, con, w.Draft); err != nil {
			return w, kept(err, w.Draft, fresh)
		}
		if w.Text, w.Findings, err = written(sheet, w.Draft, len(fresh)); err == nil {
			return w, meant(con, w.Draft, before, fresh)
		}
		if errors.Is(err, review.ErrNothing) {
			_ = os.Remove(w.Draft)
			return w, fault.Failed("the gate still asks", "nothing was decided: nothing was written")
		}
		if !con.Asks() {
			return w, kept(err, w.Draft, fresh)
		}
		what, advice := fault.Split(err)
		con.Report(&fault.Error{Cause: what, Advice: advice})
		if again, aerr := con.Ask("Edit the file again?"); aerr != nil || !again {
			return w, kept(err, w.Draft, fresh)
		}
	}
}

// draft opens the file for a round's comments: the one that was kept, and what is in it, else a new one.
func draft(con *console.Console, p *workspace.Workspace, sh *show.Shown, outcome string,
	fresh []byte, w *Written) (before []byte, err error) {
	dir := filepath.Join(p.State, layout.ReviewsDir, sh.Run)
	name := fmt.Sprintf("%s.%d.%.12s.%s.diff", sh.Gate.ID, sh.Gate.Round, sh.Taken, outcome)
	w.Draft = filepath.Join(dir, name)
	old, _, err := atomicfile.OpenRegular(dir, name, int64(len(fresh)+review.Room))
	switch {
	case err == nil && len(strings.TrimSpace(string(old))) > 0:
		con.Note("this continues what you wrote before; empty the file to decide nothing")
		return old, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fault.Failed("shorten it, or remove it: "+layout.ShortPath(w.Draft),
			"what you wrote before cannot be opened: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return nil, atomicfile.Write(w.Draft, fresh, 0o600)
}

// meant has the person confirm what they wrote before, if they left it as it was: an editor that is
// left without saving looks the same.
func meant(con *console.Console, file string, before, fresh []byte) error {
	now, err := atomicfile.Read(file, int64(len(fresh)+review.Room))
	if err != nil || before == nil || string(now) != string(before) {
		return err
	}
	if con.Asks() {
		if send, err := con.Ask("You changed nothing. Send what you wrote before?"); err == nil && send {
			return nil
		}
	}
	return kept(errors.New("you changed nothing in what you wrote before"), file, fresh)
}

// written reads what an editor left.
func written(sheet *review.Sheet, file string, fresh int) (words string, list json.RawMessage, err error) {
	data, err := atomicfile.Read(file, int64(fresh+review.Room))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, review.ErrNothing
	case errors.Is(err, atomicfile.ErrTooLarge):
		return "", nil, fault.New("shorten your comments",
			"more than %d KiB were added to the changes", review.Room>>10)
	case err != nil:
		return "", nil, err
	}
	words, comments, err := sheet.Read(data)
	if err != nil {
		return "", nil, err
	}
	if len(words) > engine.MaxFeedback {
		return "", nil, fault.New("put them into a file of the repo and name that",
			"the overall words have more than %d bytes", engine.MaxFeedback)
	}
	list, err = findings.Encode(comments)
	return words, list, err
}

// kept returns the error of a review that decided nothing, with the place of what was written.
func kept(err error, file string, fresh []byte) error {
	now, rerr := atomicfile.Read(file, int64(len(fresh)+review.Room))
	if rerr == nil && string(now) == string(fresh) {
		_ = os.Remove(file)
		return fault.Failed("the gate still asks", "nothing was decided: %w", err)
	}
	advice := "the same command opens the file again: " + layout.ShortPath(file)
	what, own := fault.Split(err)
	if own != "" {
		advice = own + "; " + advice
	}
	return fault.Failed(advice, "nothing was decided: %s", what)
}

// Discard removes the file of a review that was given. The folder of one without a word stays: an
// editor that returned at once may save there yet, and the next Review opens that.
func Discard(file string) {
	if file != "" {
		_ = os.Remove(file) // what stays is removed with the run's folder
		_ = os.Remove(filepath.Dir(file))
	}
}

// cutPlace reads FILE:LINE:TEXT, whose file may have colons.
func cutPlace(s string) (file, line, said string, ok bool) {
	parts := strings.Split(s, ":")
	for i := 1; i < len(parts)-1; i++ {
		if parts[i] != "" && strings.Trim(parts[i], "0123456789") == "" {
			file, said = strings.Join(parts[:i], ":"), strings.TrimSpace(strings.Join(parts[i+1:], ":"))
			return file, parts[i], said, file != "" && said != ""
		}
	}
	return "", "", "", false
}

// commentsOf reads the comments of a decision's options.
func commentsOf(d *Decision) error {
	switch {
	case len(d.Comments) == 0 && !d.Review:
		return nil
	case d.Signed != "":
		return fault.Misused("omit the comments", "the signed file has them (%s)", text.Line(d.Signed))
	case d.Review && strings.TrimSpace(d.Text) != "":
		return fault.Misused("omit -m: the editor asks for the words too", "--review and -m were both given")
	}
	for _, s := range d.Comments {
		file, number, said, ok := cutPlace(s)
		if ok && !filepath.IsLocal(file) {
			return fault.Misused("name the file from the top of the repo", "%q is outside the repo", text.Clip(file, 80))
		}
		if !ok {
			return fault.Misused("write FILE:LINE:TEXT, as in --comment 'src/a.go:12:this hides the error'",
				"%q is not a comment on a line", text.Clip(s, 80))
		}
		line, err := strconv.Atoi(number)
		if err != nil || line < 1 || line > findings.MaxLine {
			return fault.Misused("lines count from 1", "%q is not the number of a line", text.Clip(number, 40))
		}
		if len(said) > findings.MaxText {
			return fault.Misused("shorten it", "the comment on %s:%d has more than %d bytes",
				text.Line(file), line, findings.MaxText)
		}
		d.comments = append(d.comments, findings.Finding{File: path.Clean(file), Line: line, Message: said})
	}
	if len(d.comments) > findings.Max {
		return fault.Misused("give the most important ones",
			"there are %d comments: at most %d are read", len(d.comments), findings.Max)
	}
	raw, err := findings.Encode(d.comments)
	d.findings = raw
	return err
}

// reviewed has the person comment on the changes, if the decision asks for that.
func (d *Decision) reviewed(ctx context.Context, con *console.Console, p *workspace.Workspace) error {
	if !d.Review {
		return nil
	}
	sh, err := d.shown(ctx, con, p)
	if err != nil {
		return err
	}
	w, err := Review(ctx, con, p, sh, d.Outcome)
	if err != nil {
		return err
	}
	d.Run, d.Round = sh.Run, sh.Gate.Round
	return d.take(w)
}

// take adds what was written to the decision.
func (d *Decision) take(w Written) (err error) {
	d.Text, d.draft = w.Text, w.Draft
	d.findings, err = findings.Encode(append(findings.List(w.Findings), d.comments...))
	return err
}

// shown returns the round that the decision is about, if it still takes one.
func (d *Decision) shown(ctx context.Context, con *console.Console, p *workspace.Workspace) (*show.Shown, error) {
	v, _, err := p.View(ctx)
	if err != nil {
		return nil, err
	}
	defer v.Close() // an editor may be open for hours
	st, err := v.Status(ctx, "")
	if err == nil {
		err = knownGate(con, st, d)
	}
	if err != nil {
		return nil, err
	}
	if d.Run == "" {
		return nil, d.which("")
	}
	r, err := v.Run(ctx, d.Run)
	if err != nil {
		return nil, err
	}
	sh, err := show.Gather(ctx, p, v, r, d.Gate)
	if err != nil {
		return nil, err
	}
	gate := text.Line(d.Gate)
	look := "look again: `sluice show " + d.named() + "`"
	switch g := sh.Gate; {
	case g == nil || g.Round == 0:
		return nil, fault.Failed(look, "gate %s asks nothing now", gate)
	case g.State == engine.Approved && d.Outcome == engine.OutcomeVeto:
	case g.State != engine.OnReview && g.State != engine.OnNotice && g.State != engine.OnWindow &&
		g.State != engine.OnHuman:
		return nil, fault.Failed(look, "round %d of gate %s is decided already", g.Round, gate)
	}
	return sh, nil
}

// keep names the file of a review whose answer did not count.
func (d *Decision) keep(con *console.Console) {
	if d.draft != "" {
		con.Note("what you wrote is kept: %s", layout.ShortPath(d.draft))
	}
}
