package audit

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/journal"
	"sluice/specs"
)

// NotesName is the ref below refs/notes/ that checkpoints are kept under.
const NotesName = "sluice"

// Repo is the repo whose record is verified.
type Repo struct {
	Root, State, ID string
	Notes           func() (map[string][]byte, error) // of NotesName, by commit
}

// Checked is one thing that was checked.
type Checked struct {
	What  string `json:"what"`
	OK    bool   `json:"ok"`
	Lines int64  `json:"lines"`
	Why   string `json:"why,omitempty"`
	Sum   string `json:"sum,omitempty"`

	Point   int64  `json:"record,omitempty"`  // of a checkpoint
	Differs int64  `json:"differs,omitempty"` // the first record that is another one there
	Signed  string `json:"signed,omitempty"`  // by whom, and when

	Epoch int64 `json:"epoch,omitempty"` // of the journal's newest lead, where several machines keep it
	Left  bool  `json:"left,omitempty"`  // and one has left since: it goes on alone

	Answers int `json:"signed_answers,omitempty"` // whose signatures were looked at

	Unpassed     []Unpassed `json:"let_through,omitempty"`      // what the record says went on without a pass
	MoreUnpassed int        `json:"let_through_more,omitempty"` // older ones that are left out
}

// Unpassed is a round that let work go on without a pass, as the record has it.
type Unpassed struct {
	Run      string        `json:"run"`
	Gate     string        `json:"gate"`
	Round    int           `json:"round"`
	Outcome  string        `json:"outcome"`
	Failures int           `json:"failures"`
	Route    string        `json:"route,omitempty"` // it took, or used up, the route of this name
	Times    int           `json:"times,omitempty"` // how often by then, of one that leads back
	To       string        `json:"to,omitempty"`    // absent: where a pass leads
	By       *engine.Actor `json:"by,omitempty"`
}

// seesUnpassed wraps keep and notes what of the kept facts went on without a pass.
func (l *Checked) seesUnpassed(keep journal.Keep) journal.Keep {
	return func(rec journal.Record, n int) bool {
		if !keep(rec, n) {
			return false
		}
		if !bytes.Contains(rec.Facts[n], []byte(`"let_through"`)) {
			return true
		}
		f, err := engine.DecodeFact(rec.Facts[n])
		if err != nil {
			return true
		}
		var u Unpassed
		switch f := f.(type) {
		case engine.RoundFailed:
			u = Unpassed{Run: f.RunID(), Gate: f.Gate, Round: f.N, Outcome: f.Outcome, Failures: f.LetThrough, To: f.To,
				By: f.By}
		case engine.RoundRouted:
			u = Unpassed{Run: f.RunID(), Gate: f.Gate, Round: f.N, Outcome: f.Outcome, Route: f.Outcome, Times: f.Times,
				Failures: f.LetThrough - 1, To: f.To, By: f.By}
		case engine.RoundPassed:
			u = Unpassed{Run: f.RunID(), Gate: f.Gate, Round: f.N, Outcome: "on_exhausted", Failures: f.LetThrough}
			if f.Route != "" {
				u.Route, u.Times, u.Failures = f.Route, f.LetThrough, 0
			}
		}
		if u.Failures > 0 || u.Route != "" {
			l.Unpassed = append(l.Unpassed, u)
		}
		if over := len(l.Unpassed) - render.UnpassedShown; over > 0 {
			l.Unpassed, l.MoreUnpassed = l.Unpassed[over:], l.MoreUnpassed+over
		}
		return true
	}
}

// Verify checks the journal, the exports of the workflows (none named: of all that have a spec) and
// the checkpoints that against names, each a file or "note". The signatures of checkpoints count by
// the file signers; "" is the repo's own list.
func (r Repo) Verify(workflows, against []string, signers string) (list []Checked, ok bool, err error) {
	all := len(workflows) == 0
	points, list, err := r.checkpoints(against, signers)
	if err != nil {
		return nil, false, err
	}
	known, err := approval.Store{State: r.State}.Load()
	if err != nil {
		return nil, false, err
	}
	unsigned := slices.ContainsFunc(list, func(l Checked) bool { return !l.OK })
	rep, err := journal.Verify(r.State, journal.Options{}, points...)
	list = append([]Checked{{What: "journal", OK: err == nil, Lines: rep.Records, Sum: rep.LastSum,
		Why: errText(err), Epoch: rep.Epoch, Left: rep.Left}}, list...)
	bad := err != nil
	if all {
		files, err := specs.Find(r.Root)
		if err != nil {
			return nil, false, err
		}
		for _, f := range files {
			workflows = append(workflows, strings.TrimSuffix(filepath.Base(f), filepath.Ext(f)))
		}
	}
	for _, w := range workflows {
		if bad {
			break // the exports are compared with the journal
		}
		file := filepath.Join(r.Root, filepath.FromSlash(daemon.ExportName(w)))
		if !layout.IsFile(file) {
			if !all {
				return nil, false, fault.Failed("the first run of the workflow creates it", "%s: no audit of this workflow",
					daemon.ExportName(text.Line(w)))
			}
			continue
		}
		l := Checked{What: daemon.ExportName(w)}
		by := signatures{list: known, given: map[string]approval.Approval{}}
		x, err := journal.VerifyExport(file, r.State, by.sees(l.seesUnpassed(daemon.KeepAudit(w))), journal.Options{})
		f, is := errors.AsType[*journal.Fault](err)
		behind := is && f.Kind == journal.FaultBehind
		l.OK, l.Lines, l.Why, l.Answers = err == nil || behind, x.Lines, errText(err), by.n
		if l.OK && by.why != "" {
			l.OK, l.Why, unsigned = false, by.why, true
		}
		list = append(list, l)
		bad = bad || err != nil && !behind
	}
	return list, !bad && !unsigned, nil
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
