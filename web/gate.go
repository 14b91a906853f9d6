package web

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/findings"
	"sluice/internal/form"
	"sluice/internal/press"
	"sluice/internal/render"
	"sluice/internal/show"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/web/ansi"
)

// gatePage is a gate, with all that a person needs to decide.
type gatePage struct {
	*show.Shown
	Repo, URL, RunURL      string
	Title, StateWords, Why string
	Who, Spent             string
	Signed                 bool
	Checks                 []checkLine
	Hold                   bool // all of them
	Verdicts               []verdictLine
	Options                []string
	Findings               []findingLine
	Earlier                []earlierRound
	Said, Answer           string // what the step's agent said of its work, and its answer
	AttemptURL             string
	Changes                changes

	Passkey bool // a passkey signs what is decided here
	Remote  bool // the browser is on another device: without a passkey it decides nothing

	Open   bool // a person may decide now
	Late   bool // by a veto of what has passed
	Served bool
	Acts   []act
	Fields []form.Field // what an answer is asked for
	Given  []string     // what is in them: the default, or what was written and not taken in
	Form   formData
	Drafts []comment
	Kept   string // words that were not sent
	Failed string // why it was not

	Was  string // hash of the words that were kept when it was made
	From int    // the earlier round that they were written about

	key draftKey
}

type checkLine struct {
	Command string
	HTML    template.HTML // web/ansi made it
	Left    int           // bytes of the output that are not shown
}

// verdictLine is what was judged of the attempt: at this gate, or at another one.
type verdictLine struct {
	Gate, Outcome, By, Score, Words, Answer string
}

type findingLine struct {
	State, Place, Words, Severity, From string
}

type earlierRound struct {
	N           int
	Outcome, By string
	Words       string
}

// act is a button.
type act struct {
	Outcome, Label, Class string
	Words                 bool // it needs words
}

// formData binds an answer to what its page showed.
type formData struct {
	Round         int
	Digest, Shown string
}

func (s *Server) gate(r *http.Request) (v view, err error) {
	err = atGate(s, r, func(at repo, p *gatePage) error {
		if !followed(r) { // the changes are no part that follows
			err = s.changes(r, at, p)
		}
		v = gateView(at, p)
		return err
	})
	return v, err
}

func gateView(at repo, p *gatePage) view {
	return view{title: p.Title, nav: "inbox", body: "gate",
		parts: []string{"gatehead", "gatefacts", "verdict", "newround"}, repos: []string{at.Root}, run: p.Run, data: p}
}

// atGate is look, with the page of the gate that the address names.
func atGate(s *Server, r *http.Request, do func(at repo, p *gatePage) error) error {
	return s.look(r, func(at repo, vw workspace.Viewer, served bool, run daemon.RunStatus) error {
		p, err := s.gatePage(r, at, vw, served, run)
		if err != nil {
			return err
		}
		return do(at, p)
	})
}

// gatePage returns what is known about a gate of a run, without the changes.
func (s *Server) gatePage(r *http.Request, at repo, vw workspace.Viewer, served bool,
	run daemon.RunStatus) (*gatePage, error) {
	id := r.PathValue("gate")
	if _, g := run.Gate(id); g == nil {
		return nil, errNotFound{fmt.Sprintf("no gate %q in %s", text.Line(id), run.ID)}
	}
	sh, err := show.Gather(r.Context(), at.Workspace, vw, run, id)
	if err != nil {
		return nil, err
	}
	g := *sh.Gate
	url := runURL(at.Name, run.ID)
	p := &gatePage{Shown: sh, Repo: at.Name, RunURL: url, URL: url + "/g/" + id,
		Title: cmp.Or(sh.LookFor, text.Title(id, g.Name)), StateWords: render.GateState(g), Why: render.WhyElse(g.Why),
		Signed: g.Trust == engine.TrustSigned, Spent: render.Spent(run.Usage, run.Budget), Served: served,
		key: keyOf(at, s.passkeys.writer(r), run.ID, id, g.Round)}
	p.Who = "anyone on this machine"
	if len(g.Approvers) > 0 {
		p.Who = strings.Join(g.Approvers, ", ") + ", except who worked on it"
	}
	p.Open = served && run.Live() && slices.Contains([]string{engine.OnHuman, engine.OnWindow, engine.Approved}, g.State)
	p.acts()
	p.known()
	if at := sh.Attempt; at != nil {
		p.AttemptURL = attemptURL(url, sh.Step, at.N)
		p.Said, p.Answer, p.Options = at.Summary, show.Readable(at.Answer), at.Options
		p.Hold = at.Checked && at.Failure == ""
		p.verdicts()
	}
	p.Form = formData{g.Round, g.Reviewed, s.stamp(p.URL, g.Round, g.Reviewed, s.con.Now().UnixMilli())}
	if g.State == engine.OnHuman && len(g.AnswerSchema) > 0 {
		f, err := form.New(g.AnswerSchema)
		if err != nil {
			return nil, err
		}
		p.Fields = f.Fields()
		for _, x := range p.Fields {
			p.Given = append(p.Given, x.Default)
		}
	}
	kept, err := s.drafts.load(p.key)
	if err != nil {
		return nil, err
	}
	p.Kept, p.Was = kept.Words, hashOf(kept.Words)
	if p.Open {
		p.Drafts, p.From = kept.Comments, kept.from
		copy(p.Given, kept.Fields)
	} else {
		p.Kept = joined(kept.Words, kept.Comments, "")
	}
	return p, s.passkeys.signing(r, at, p)
}

// AtRound is what a command that passes this round names.
func (p *gatePage) AtRound() string {
	return daemon.AtRound(daemon.Named(p.Gate.ID, p.Run, true), p.Gate.Round)
}

// acts are the buttons of a gate in its state.
func (p *gatePage) acts() {
	g := p.Gate
	if !p.Open {
		return
	}
	if g.State != engine.OnHuman {
		p.Late = g.State == engine.Approved
		p.Acts = []act{{engine.OutcomeVeto, "Veto", "no", true}}
		return
	}
	for _, o := range g.Outcomes {
		switch o {
		case engine.OutcomeVeto:
		case engine.OutcomePass:
			label := "Pass"
			if p.Taken != "" {
				label = "Pass " + p.Taken[:min(len(p.Taken), 7)]
			}
			p.Acts = append(p.Acts, act{o, label, "go", false})
		case engine.OutcomeFail:
			p.Acts = append(p.Acts, act{o, "Fail", "no", true})
		default:
			p.Acts = append(p.Acts, act{o, text.Line(o), "", false})
		}
	}
	slices.SortStableFunc(p.Acts, func(a, b act) int { return rank(a) - rank(b) })
}

// rank puts the pass last, away from a hasty click.
func rank(a act) int { return slices.Index([]string{"no", "", "go"}, a.Class) }

// checkMost is how much of a check's output a page has, as HTML.
const checkMost = 64 << 10

// known adds the results of checks, reviewers and earlier rounds.
func (p *gatePage) known() {
	for _, c := range p.Checked {
		html, left := ansi.HTML([]byte(c.Output), checkMost)
		p.Checks = append(p.Checks, checkLine{c.Command, template.HTML(html), left})
	}
	for _, f := range p.Since {
		from := "the reviewer"
		if f.Comment {
			from = "a person"
		}
		p.Findings = append(p.Findings, findingLine{f.State, f.Place(), f.Message, f.Severity, from})
	}
	for _, q := range p.Shown.Earlier {
		p.Earlier = append(p.Earlier, earlierRound{q.N, show.Outcome(q), render.By(q.ByKind, q.By), q.Feedback})
	}
}

// verdicts adds what was said of the work, by this gate last.
func (p *gatePage) verdicts() {
	g := p.Gate
	for _, j := range p.Judged {
		p.judged(j.Gate, j.Name, j.Round)
	}
	if n := len(g.Rounds); n > 0 && g.Rounds[n-1].Attempt == p.Attempt.N {
		p.judged(g.ID, g.Name, g.Rounds[n-1])
	}
}

// judged adds what a round of a gate says of the work.
func (p *gatePage) judged(gate, name string, q engine.Round) {
	if q.Outcome == "" && q.Feedback == "" {
		return
	}
	v, from := verdictLine{Words: q.Feedback}, "the reviewer"
	if gate != p.Gate.ID {
		v.Gate = text.Title(gate, name)
		from += " at " + gate
	}
	if q.Step != p.Step {
		v.Gate += " of " + q.Step
	}
	if q.Outcome != "" {
		v.Outcome = show.Outcome(q)
	}
	if q.ByKind != "" {
		v.By = render.By(q.ByKind, q.By)
	}
	if q.ByKind == engine.Human {
		v.Answer = show.Readable(q.Answer)
	}
	if q.Score != nil {
		v.Score = fmt.Sprintf("%g", *q.Score)
	}
	p.Verdicts = append(p.Verdicts, v)
	for _, f := range findings.List(q.Findings) {
		p.Findings = append(p.Findings, findingLine{"new", f.Place(), f.Message, f.Severity, from})
	}
}

// stamp seals the time, in milliseconds, at which a form about a round was made, so that nobody decides on a
// page that has only just appeared. gate is the URL of the gate.
func (s *Server) stamp(gate string, round int, digest string, at int64) string {
	h := hmac.New(sha256.New, s.mac)
	fmt.Fprintf(h, "%s\x00%d\x00%s\x00%d", gate, round, digest, at)
	return fmt.Sprintf("%d.%s", at, hex.EncodeToString(h.Sum(nil)))
}

// ripe returns why an answer is too early, or belongs to another form; "" = it may count.
func (s *Server) ripe(f formData, gate string) string {
	at, _, _ := strings.Cut(f.Shown, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !hmac.Equal([]byte(s.stamp(gate, f.Round, f.Digest, ms)), []byte(f.Shown)) {
		return "this form is of an earlier page: look again"
	}
	if s.con.Now().Sub(time.UnixMilli(ms)) < press.Shown {
		return "it has only just come to the screen: look, then answer"
	}
	return ""
}
