package web

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/findings"
	"sluice/internal/press"
	"sluice/tools/conform"
)

// drafted returns the comments that are kept for a round.
func (p *site) drafted(run string, round int) []comment {
	p.Helper()
	d, err := p.s.drafts.load(keyOf(repo{"shop", p.at}, "", run, "G", round))
	if err != nil {
		p.Fatal(err)
	}
	return d.Comments
}

func (p *site) comment(run, file, line, text string) int {
	p.Helper()
	return p.ask("POST", "/r/shop/"+run+"/g/G/draft", url.Values{"round": {"1"}, "at": {file + ":" + line},
		"c": {text}}).Code
}

// TestDrafts: a comment is kept until it is sent, replaced by one on the same line, removed by one
// without words, and arrives with a fail.
func TestDrafts(t *testing.T) {
	conform.Rule(t, "11-page draft", "A draft is kept until it is sent")
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	for _, c := range [][3]string{{"a.go", "3", "first"}, {"a.go", "4", "second"}, {"a.go", "3", "better"},
		{"b.go", "3", "third"}, {"a.go", "4", " "}} {
		if code := p.comment(run, c[0], c[1], c[2]); code != 303 {
			t.Errorf("%v: %d", c, code)
		}
	}
	p.open() // a restart loses nothing
	if got, want := fmt.Sprint(p.drafted(run, 1)), "[{a.go 3 better} {b.go 3 third}]"; got != want {
		t.Errorf("kept is %s, want %s", got, want)
	}
	form := p.form(at)
	if w := p.answer(at, form, "outcome", "later"); w.Code != 200 || len(p.drafted(run, 1)) != 2 {
		t.Errorf("a question drops the drafts: %d", w.Code)
	}
	if w := p.answer(at, form, "outcome", "fail"); w.Code != 303 {
		t.Fatalf("comments are not words enough: %d %s", w.Code, w.Body)
	}
	if left, err := os.ReadDir(filepath.Join(p.home, draftsDir)); err != nil || len(left) != 0 {
		t.Errorf("after the answer is left: %v %v", left, err)
	}
	got := p.failed(run)
	for _, want := range []string{"a.go", "better", "b.go", "third"} {
		if !strings.Contains(got, want) {
			t.Errorf("recorded is %s", got)
		}
	}
}

// failed returns the comments that the first round of G failed with.
func (p *site) failed(run string) (got string) {
	p.Helper()
	if err := p.client.Facts(p.Context(), run, 0, false, func(l daemon.Line) error {
		f, err := engine.DecodeFact(l.Fact)
		if x, ok := f.(engine.RoundFailed); ok && x.N == 1 {
			got = fmt.Sprint(findings.List(x.Findings))
		}
		return err
	}); err != nil {
		p.Fatal(err)
	}
	return got
}

// TestJoined: what is part of other words only by chance stays, what was kept already is not there twice.
func TestJoined(t *testing.T) {
	got := joined("this is not good", []comment{{}, {File: "a", Line: 2, Text: "why"}}, "not good\n\na:2: why\n\nthis is not good")
	if want := "this is not good\n\na:2: why\n\nnot good"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := joined("", nil, "kept"); got != "kept" {
		t.Errorf("%q", got)
	}
}

// TestOldDraftsGo: what was written a month ago is removed at the next start; what is newer stays.
func TestOldDraftsGo(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	p.comment(run, "a.go", "3", "first")
	p.later(draftLife - time.Hour)
	if p.open(); len(p.drafted(run, 1)) != 1 {
		t.Error("a draft of less than a month is gone")
	}
	p.later(2 * time.Hour)
	if p.open(); len(p.drafted(run, 1)) != 0 {
		t.Error("a draft of more than a month is kept")
	}
}

// TestDraftsAtAPass: comments that a pass does not send are gone with its round.
func TestDraftsAtAPass(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	p.comment(run, "a.go", "3", "first")
	sure := fieldsOf(p.answer(at, p.form(at), "outcome", "pass").Body.String())
	p.later(press.Shown)
	if w := p.answer(at, sure, "outcome", "pass"); w.Code != 303 || len(p.drafted(run, 1)) != 0 {
		t.Errorf("%d %v", w.Code, p.drafted(run, 1))
	}
}

// TestRefusedDrafts: a comment that cannot be kept says why and keeps the words in sight.
func TestRefusedDrafts(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G/draft"
	for _, c := range []struct {
		what string
		form url.Values
		why  string
	}{
		{"another round", url.Values{"round": {"2"}, "at": {"a:1"}, "c": {"my words"}}, "my words"},
		{"no round", url.Values{"at": {"a:1"}, "c": {"my words"}}, "my words"},
		{"no file", url.Values{"round": {"1"}, "at": {":1"}, "c": {"my words"}}, "my words"},
		{"no line", url.Values{"round": {"1"}, "at": {"a"}, "c": {"my words"}}, "my words"},
		{"line 0", url.Values{"round": {"1"}, "at": {"a:0"}, "c": {"my words"}}, "my words"},
		{"a line past all", url.Values{"round": {"1"}, "at": {fmt.Sprintf("a:%d", findings.MaxLine+1)},
			"c": {"my words"}}, "my words"},
	} {
		w := p.ask("POST", at, c.form)
		if w.Code != 409 || !strings.Contains(w.Body.String(), c.why) {
			t.Errorf("%s: %d %s", c.what, w.Code, w.Body)
		}
	}
	elsewhere := "/r/shop/" + run + "/g/H/draft"
	if w := p.ask("POST", elsewhere, url.Values{"round": {"0"}, "at": {"a:1"}, "c": {"x"}}); w.Code != 404 {
		t.Errorf("a gate that is not there: %d", w.Code)
	}
	if got := p.drafted(run, 1); len(got) != 0 {
		t.Errorf("kept is %v", got)
	}
	for what, text := range map[string]string{"more than a finding has": strings.Repeat("a", findings.MaxText+1),
		"without end": strings.Repeat("a", draftMost)} {
		if code := p.comment(run, "a", "1", text); code != 409 || len(p.drafted(run, 1)) != 0 {
			t.Errorf("a comment that is %s: %d", what, code)
		}
	}
	if code := p.comment(run, "a", "1", "a\x00b"); code != 303 || p.drafted(run, 1)[0].Text != "ab" {
		t.Errorf("a comment with NUL: %d %v", code, p.drafted(run, 1))
	}
	for i := range findings.Max {
		if code := p.comment(run, "a", fmt.Sprint(i+1), "x"); code != 303 {
			t.Fatalf("comment %d: %d", i+1, code)
		}
	}
	code := p.comment(run, "a", fmt.Sprint(findings.Max+1), "x")
	if code != 409 || len(p.drafted(run, 1)) != findings.Max {
		t.Errorf("comments without end: %d", code)
	}
}
