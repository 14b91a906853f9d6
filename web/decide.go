package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/findings"
	"sluice/internal/form"
	"sluice/internal/press"
	"sluice/internal/text"
)

// decide accepts a person's answer at a gate. An answer that does not count comes back on the page,
// with the reason.
func (s *Server) decide(r *http.Request) (to string, v *view, err error) {
	err = atGate(s, r, func(at repo, p *gatePage) error {
		words := strings.TrimSpace(r.PostForm.Get("text"))
		refuse := func(why string) error {
			p.Failed, p.Kept = why, words
			copy(p.Given, r.PostForm["field"])
			out := gateView(at, p)
			v = &out
			return s.changes(r, at, p)
		}
		if words, err = keep(r, s.drafts, p, words); err != nil {
			return refuse(text.Message(err.Error()))
		}
		if r.PostForm.Get("look") != "" { // with the words
			to = p.URL
			return nil
		}
		ev, why := s.answer(r, p, words)
		if why != "" {
			return refuse(why)
		}
		if p.Remote {
			return refuse("on this device a decision counts only if your passkey signs it, which needs JavaScript")
		}
		if !engine.Refuses(ev.Outcome) && r.PostForm.Get("sure") != "yes" {
			err = s.changes(r, at, p)
			v = sure(r, p, ev)
			return err
		}
		why, err = hand(r.Context(), s.drafts, at, p, ev)
		if why != "" {
			return refuse(why)
		}
		to = p.RunURL // the gate's page may be about the next round
		return err
	})
	return to, v, err
}

// keep keeps what the form of an answer has, so that a question or a refusal loses nothing. Comments on
// what the gate does not ask about any more become words.
func keep(r *http.Request, d *drafts, p *gatePage, words string) (string, error) {
	f := r.PostForm
	if !p.Open || f.Get("round") != strconv.Itoa(p.Form.Round) || f.Get("digest") != p.Form.Digest {
		if p.sent(f.Get("round"), words) {
			words = ""
		}
		words = joined(words, unkept(f), p.Kept)
		return words, d.change(p.key, func(now *draftOf) { *now = draftOf{Words: words, Fields: givenOr(r, now.Fields)} })
	}
	all, err := merged(p.Drafts, f)
	if err != nil {
		p.Drafts = unkept(f)
		return words, err
	}
	if p.Drafts = all; len(all) == 0 && words == "" && strings.Join(f["field"], "") == "" {
		return words, nil
	}
	return words, d.change(p.key, func(now *draftOf) {
		*now = draftOf{Words: words, Comments: all, Fields: givenOr(r, now.Fields)}
	})
}

// sent reports whether a round has been decided with these words: a browser can send a form again.
func (p *gatePage) sent(round, words string) bool {
	return slices.ContainsFunc(p.Gate.Rounds, func(q engine.Round) bool {
		return strconv.Itoa(q.N) == round && q.ByKind == engine.Human && q.Feedback == words
	})
}

// hand hands in an answer and removes its draft. why is the reason if it did not count.
func hand(ctx context.Context, d *drafts, at repo, p *gatePage, ev engine.Answered) (why string, err error) {
	done, err := at.Do(ctx, ev, via)
	switch {
	case err != nil:
		return text.Message(err.Error()), nil
	case done.Ignored != "":
		return "it did not count: " + text.Message(done.Ignored), nil
	case done.Void():
		return "it did not count: the work has changed since it was reviewed, so a new round opens", nil
	}
	return "", d.drop(p.key)
}

// answer returns the event of an answer, or why it does not count.
func (s *Server) answer(r *http.Request, p *gatePage, words string) (engine.Answered, string) {
	f := r.PostForm
	ev := engine.Answered{Run: p.Run, Gate: p.Gate.ID, Outcome: f.Get("outcome"), Text: words}
	round, err := strconv.Atoi(f.Get("round"))
	shown := formData{round, f.Get("digest"), f.Get("shown")}
	switch {
	case err != nil:
		return ev, "the form names no round: look again"
	case !p.Open:
		return ev, fmt.Sprintf("gate %s does not ask a person now: it is %s", p.Gate.ID, p.StateWords)
	case round != p.Form.Round:
		return ev, fmt.Sprintf("it was an answer to round %d, and round %d is open now: look again", round, p.Form.Round)
	case shown.Digest != p.Form.Digest:
		return ev, "the work has changed since this page was made: look again"
	case len(words) > engine.MaxFeedback:
		return ev, fmt.Sprintf("the feedback has more than %d bytes: put it into a file in the repo and name that file",
			engine.MaxFeedback)
	}
	if why := s.ripe(shown, p.URL); why != "" {
		return ev, why
	}
	if !slices.ContainsFunc(p.Acts, func(a act) bool { return a.Outcome == ev.Outcome }) {
		return ev, fmt.Sprintf("gate %s does not accept %q now", p.Gate.ID, text.Line(ev.Outcome))
	}
	ev.Round = round
	if engine.Refuses(ev.Outcome) {
		if words == "" && len(p.Drafts) == 0 {
			return ev, "say what is wrong: the next attempt reads it"
		}
		ev.Findings, err = findingsOf(p.Drafts)
	} else if ev.Outcome == engine.OutcomePass && len(p.Fields) > 0 {
		ev.Answer, err = answerOf(p, f["field"])
	}
	if err != nil {
		return ev, text.Message(err.Error())
	}
	return ev, ""
}

func findingsOf(drafts []comment) (json.RawMessage, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	list := make([]findings.Finding, len(drafts))
	for i, c := range drafts {
		list[i] = findings.Finding{File: c.File, Line: c.Line, Message: c.Text}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return findings.Clean(raw)
}

// answerOf reads the fields of an answer, in the order of its questions.
func answerOf(p *gatePage, fields []string) (json.RawMessage, error) {
	f, err := form.New(p.Gate.AnswerSchema)
	if err != nil {
		return nil, err
	}
	for i := 0; !f.Done(); i++ {
		value := ""
		if i < len(fields) {
			value = fields[i]
		}
		if why := f.Take(value); why != "" {
			return nil, fault.New("fill in the field", "%s", why)
		}
	}
	return f.Answer()
}

// surePage asks whether a pass, or a route, is meant.
type surePage struct {
	Question, Label, Outcome, Text, URL string
	Fields                              []string
	Form                                formData
	Commit, Changes                     string // what it passes, and how much that changes; "" = nothing
	Unsent                              int    // comments on lines
}

func sure(r *http.Request, p *gatePage, ev engine.Answered) *view {
	out := sureOf(p, ev)
	out.Fields = r.PostForm["field"]
	return &view{title: out.Label, nav: "inbox", body: "sure", data: out, ask: true}
}

// sureOf is the question before a pass or a route.
func sureOf(p *gatePage, ev engine.Answered) surePage {
	g := p.Gate
	q := press.Pass{Run: p.Run, Gate: g.ID, GateName: g.Name, Round: g.Round, Step: p.Step, StepName: p.StepName,
		Answer: form.Shown(ev.Answer), Untaken: p.Untaken}
	if p.Taken == "" {
		q.Content = p.Form.Digest
	}
	if ev.Outcome != engine.OutcomePass {
		q.Route = ev.Outcome
	}
	out := surePage{Question: q.Question(), Outcome: ev.Outcome, Text: ev.Text, URL: p.URL, Form: p.Form,
		Commit: p.Taken, Unsent: len(p.Drafts)}
	if c := p.Changes; c.Files > 0 && !c.Since {
		out.Changes = fmt.Sprintf("%s changed, +%d −%d", text.Plural(c.Files, "file"), c.Added, c.Removed)
	}
	for _, a := range p.Acts {
		if a.Outcome == ev.Outcome {
			out.Label = a.Label
		}
	}
	return out
}
