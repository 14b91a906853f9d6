package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/layout"
	"sluice/internal/review"
	"sluice/internal/show"
	"sluice/internal/tree"
	"sluice/web/patch"
)

// TestNothingWrittenIsLost: what a form of an answer has is kept whatever becomes of the answer.
func TestNothingWrittenIsLost(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	form := p.form(at)
	form["at"], form["c"] = []string{"a.go:3", "a.go:3", "b.go:1"}, []string{"at the line", "at one removed after it", "more"}
	form.Set("text", "my words")
	want := "[{a.go 3 at the line\n\nat one removed after it} {b.go 1 more}]"

	if w := p.answer(at, form, "outcome", "pass"); w.Code != http.StatusOK {
		t.Fatalf("no question before a pass: %d", w.Code)
	}
	if got := fmt.Sprint(p.drafted(run, 1)); got != want {
		t.Errorf("after a question is kept %q, want %q", got, want)
	}
	if back := p.ask("GET", at, nil).Body.String(); !strings.Contains(back, "my words") {
		t.Error("after a question the words are gone")
	}
	form["at"], form["c"] = []string{"c.go:1"}, []string{"too early"}
	form.Set("shown", "1.x")
	if w := p.answer(at, form, "outcome", "fail"); w.Code != http.StatusConflict {
		t.Fatalf("an answer to another form: %d", w.Code)
	}
	if got := fmt.Sprint(p.drafted(run, 1)); !strings.Contains(got, "{c.go 1 too early}") {
		t.Errorf("after a refusal is kept %q", got)
	}

	fresh := p.form(at)
	if w := p.answer(at, fresh, "outcome", "fail", "text", "no"); w.Code != http.StatusSeeOther {
		t.Fatalf("fail: %d %s", w.Code, w.Body)
	}
	p.until(run, "round 2", func(r daemon.RunStatus) bool { return len(r.Waits) > 0 && r.Gates()[0].Round == 2 })
	w := p.answer(at, form, "outcome", "fail")
	if body := w.Body.String(); w.Code != http.StatusConflict || !strings.Contains(body, "c.go:1: too early") ||
		!strings.Contains(body, "my words") || len(p.drafted(run, 2)) > 0 {
		t.Errorf("comments on lines of round 1 belong to the words in round 2: %d %v", w.Code, p.drafted(run, 2))
	}
}

// TestWordsAtAClosedGate: who decides second sees what they wrote.
func TestWordsAtAClosedGate(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	form := p.form(at)
	if w := p.answer(at, form, "outcome", "later", "sure", "yes"); w.Code != http.StatusSeeOther {
		t.Fatalf("later: %d %s", w.Code, w.Body)
	}
	w := p.answer(at, form, "outcome", "fail", "text", "too late", "at", "a.go:1", "c", "on a line")
	if body := w.Body.String(); w.Code != http.StatusConflict || !strings.Contains(body, "too late") ||
		!strings.Contains(body, "a.go:1: on a line") {
		t.Errorf("the words are gone: %d", w.Code)
	}
	form["at"], form["c"] = []string{"a.go:1"}, []string{"on a line"}
	w = p.ask("POST", at+"/draft", form)
	if body := w.Body.String(); w.Code != http.StatusConflict || !strings.Contains(body, "a.go:1: on a line") {
		t.Errorf("a draft that nobody sees again: %d", w.Code)
	}
}

// TestWordsComeAlong: what was written about a round that somebody else has decided is on the page of the next round, and of
// a gate that asks nobody any more.
func TestWordsComeAlong(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	form := p.form(at)
	form["at"], form["c"] = []string{"a.go:3"}, []string{"at the line"}
	form.Set("text", "my words")
	if w := p.ask("POST", at+"/draft", form); w.Code != http.StatusSeeOther {
		t.Fatalf("draft: %d %s", w.Code, w.Body)
	}
	decided := func(round int, outcome string) {
		t.Helper()
		d, err := p.client.Do(t.Context(), engine.Answered{Run: run, Gate: "G", Round: round, Outcome: outcome, Text: "elsewhere"}, "command")
		if err != nil || d.Ignored != "" {
			t.Fatal(d, err)
		}
	}
	decided(1, "fail")
	p.until(run, "round 2", func(r daemon.RunStatus) bool { return len(r.Waits) > 0 && r.Gates()[0].Round == 2 })
	shows := func(when string, want ...string) {
		t.Helper()
		page := p.ask("GET", at, nil).Body.String()
		for _, s := range want {
			if strings.Count(page, s) != 1 {
				t.Errorf("%s: %q is there %d times", when, s, strings.Count(page, s))
			}
		}
	}
	shows("in round 2", "my words", "a.go:3: at the line", "You wrote this in round 1")
	form.Set("text", "my words, and more")
	form.Set("look", "yes")
	if w := p.answer(at, form); w.Code != http.StatusSeeOther || w.Header().Get("Location") != at {
		t.Errorf("look again: %d %s", w.Code, w.Body)
	}
	shows("after a look", "my words, and more", "a.go:3: at the line")
	decided(2, "later")
	p.until(run, "the end", func(r daemon.RunStatus) bool { return !r.Live() })
	shows("at its end", "What you wrote, and did not send", "my words, and more", "a.go:3: at the line")
}

// TestGateShowsWhatWasJudged: who decides after a reviewer reads what it said of the attempt, and of a reply that is no
// verdict its end; a window names nobody before it closes.
func TestGateShowsWhatWasJudged(t *testing.T) {
	p := newSite(t)
	score := 90.0
	p.world.judge = engine.Judgement{Outcome: engine.OutcomePass, Score: &score, Feedback: "mind the log level",
		Findings: json.RawMessage(`[{"file": "a.go", "line": 3, "message": "too loud"}]`)}
	shows := func(run, gate string, want ...string) {
		t.Helper()
		page := p.ask("GET", "/r/shop/"+run+"/g/"+gate, nil).Body.String()
		for _, s := range want {
			if !strings.Contains(page, s) {
				t.Errorf("%s shows no %q:\n%s", gate, s, page)
			}
		}
		if strings.Contains(page, "the engine") {
			t.Errorf("%s: the engine judged nothing", gate)
		}
	}
	spec := strings.Replace(asksSpec, "gate: G}", "gate: R}", 1) +
		"  - {id: R, name: an agent reads it, reviewer: {level: auto, agent_type: r}, on_pass: {next_gate: G}, on_fail: {next_step: A}}\n"
	run := p.run(spec)
	shows(run, "R", "This gate has passed. A veto now stops and undoes what came after it.")
	if w := p.ask("POST", "/r/shop/"+run+"/note", url.Values{"text": {"look at a.go"}}); w.Code != http.StatusSeeOther {
		t.Fatal(w)
	}
	shows(run, "G", `look at a.go</div><p class="soft">by `)
	shows(run, "G", `<b>R an agent reads it</b> <span class="tag ok">pass</span> by its reviewer · score 90</p>`,
		"mind the log level", "too loud", "a.go:3, by the reviewer at R")
	spec = strings.Replace(spec, "level: auto", "level: notify", 1)
	run = p.run(spec)
	p.until(run, "its window", func(r daemon.RunStatus) bool { return r.Gates()[0].State == engine.OnWindow })
	shows(run, "R", "open to a veto", `<span class="tag ok">pass</span> · score 90</p>`)
	p.world.judge = engine.Judgement{Inconclusive: "no JSON in the reply"}
	run = p.run(spec)
	q := p.until(run, "asked", asksNow).Gates()[0].Rounds[0]
	dir := daemon.AttemptDir(p.root, run, "R", 1, q.K)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, layout.ReplyFile), []byte("rather good"), 0o644); err != nil {
		t.Fatal(err)
	}
	shows(run, "R", "no JSON in the reply", `The last reply, which is not a verdict</h2><div class="card pad words">rather good</div>`)
}

// TestEachWritesTheirOwn: what a browser on another device writes is not sent by a person on this one.
func TestEachWritesTheirOwn(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	cookie, err := p.s.logins.add(login{})
	if err != nil {
		t.Fatal(err)
	}
	w := p.ask("POST", at+"/draft", url.Values{"round": {"1"}, "at": {"a.go:1"}, "c": {"planted"}, "text": {"planted"}},
		"Cookie: "+cookieName+"="+cookie)
	if w.Code != http.StatusSeeOther {
		t.Fatalf("draft: %d", w.Code)
	}
	if here := p.ask("GET", at, nil).Body.String(); strings.Contains(here, "planted") || len(p.drafted(run, 1)) > 0 {
		t.Error("another device writes what is sent from this one")
	}
	there := p.ask("GET", at, nil, "Cookie: "+cookieName+"="+cookie).Body.String()
	if !strings.Contains(there, "planted") {
		t.Error("it does not see its own")
	}
}

// TestStreamReadsNoChanges: a gate that is followed does not have git read the whole diff at each record
// of the journal.
func TestStreamReadsNoChanges(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	dir := filepath.Join(p.at.State, "attempts", run)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	none := strings.Repeat("1", 40)
	record := fmt.Sprintf(`{"files": ["a.go"], "found": %q, "taken": {"commit": %q}}`, none, none)
	if err := os.WriteFile(filepath.Join(dir, "A.1.files"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	for accept, reads := range map[string]bool{streams: false, "text/html": true} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/r/shop/"+run+"/g/G", nil)
		r.SetPathValue("repo", "shop")
		r.SetPathValue("run", run)
		r.SetPathValue("gate", "G")
		r.Header.Set("Accept", accept)
		v, err := p.s.gate(r)
		if err != nil {
			t.Fatal(err)
		}
		if fault := v.data.(*gatePage).Changes.Fault; (fault != "") != reads {
			t.Errorf("%s reads the changes: %v, want %v", accept, fault != "", reads)
		}
	}
}

// TestQuestionNamesTheChanges: who is asked once more before a pass, or a route, reads how much it changes.
func TestQuestionNamesTheChanges(t *testing.T) {
	p := newSite(t)
	p.put("a.go", "package a\n")
	for _, args := range [][]string{{"add", "a.go"}, {"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "a"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", p.root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), "git", "-C", p.root, "rev-parse", "HEAD~1", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	ends := strings.Fields(string(out))
	run := p.run(asksSpec)
	dir := filepath.Join(p.at.State, "attempts", run)
	record := fmt.Sprintf(`{"files": ["a.go"], "found": %q, "taken": {"commit": %q}}`, ends[0], ends[1])
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "A.1.files"), []byte(record), 0o600)); err != nil {
		t.Fatal(err)
	}
	at := "/r/shop/" + run + "/g/G"
	for outcome, asks := range map[string]string{"pass": "Pass G review, round 1 of " + run, "later": "Decide later at G review, round 1 of " + run} {
		page := p.answer(at, p.form(at), "outcome", outcome).Body.String()
		for _, want := range []string{asks, ends[1], "<p>1 file changed, &#43;1 −0</p>"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q:\n%s", outcome, want, page)
			}
		}
	}
}

// TestTwoTabs: a tab in which no words were written does not remove those of another.
func TestTwoTabs(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	one, two := p.form(at), p.form(at)
	one.Set("text", "from the first tab")
	two["at"], two["c"] = []string{"a.go:1"}, []string{"from the second"}
	for _, form := range []url.Values{one, two} {
		if w := p.ask("POST", at+"/draft", form); w.Code != http.StatusSeeOther {
			t.Fatalf("draft: %d %s", w.Code, w.Body)
		}
	}
	page := p.ask("GET", at, nil).Body.String()
	if !strings.Contains(page, "from the first tab") || !strings.Contains(page, "from the second") {
		t.Error("the second tab removes what was written in the first")
	}
}

// TestCommentInAFileWithAnOddName: the comment is below its line again, whatever the agent named the file.
func TestCommentInAFileWithAnOddName(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	change, id := &patch.Change{N: 1, Path: "a\tb\u202e<c>&.go"}, patch.ID{File: 1, Line: 3}
	page := &gatePage{Open: true, URL: at}
	form := p.form(at)
	_, box, _ := strings.Cut(string(below(id, review.Line{}, page)(nil, change, id)), `name="at" value="`)
	place, _, _ := strings.Cut(box, `"`)
	form["at"] = []string{unescape(place)}
	form["c"] = []string{"about this line"}
	if w := p.ask("POST", at+"/draft", form); w.Code != http.StatusSeeOther {
		t.Fatalf("draft: %d %s", w.Code, w.Body)
	}
	page.Drafts = p.drafted(run, 1)
	if box = string(below(patch.ID{}, review.Line{}, page)(nil, change, id)); !strings.Contains(box, "about this line") {
		t.Errorf("kept is %+v, and below the line is %q", page.Drafts, box)
	}
}

// TestNoteIsKept: words for a run that is not steered come back, with what went wrong.
func TestNoteIsKept(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	long := strings.Repeat("w", engine.MaxFeedback+1)
	for _, c := range []struct {
		path, text, why string
	}{
		{"/r/shop/" + run + "/note", long, "has more than"},
		{"/r/shop/none/note", "look at <it>", "none"},
		{"/r/shop/none/abort", "look at <it>", "none"},
		{"/r/elsewhere/" + run + "/note", "look at <it>", "no repo"},
	} {
		w := p.ask("POST", c.path, url.Values{"text": {c.text}, "step": {"A"}, "sure": {"none"}})
		body := w.Body.String()
		if w.Code != http.StatusConflict || !strings.Contains(body, ">"+strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(c.text)+"</textarea>") ||
			!strings.Contains(body, c.why) || !strings.Contains(body, `action="`+c.path+`"`) || fieldsOf(body).Get("step") != "A" {
			t.Errorf("%s: %d %.2000s", c.path, w.Code, body)
		}
	}
	if w := p.ask("POST", "/r/shop/"+run+"/note", url.Values{"text": {"look"}}); w.Code != http.StatusSeeOther {
		t.Errorf("a note: %d", w.Code)
	}
}

// TestHiddenFilesAreCounted: beside the hidden files that are named, the page says how many there are.
func TestHiddenFilesAreCounted(t *testing.T) {
	p, err := parsePages(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	html, err := p.render("gatefacts", &gatePage{Shown: &show.Shown{Gate: &daemon.GateStatus{},
		Hidden: []tree.Beside{{Path: "a.evil"}, {Path: "b.evil"}}, More: 60}})
	if want := "a.evil, b.evil, and 60 more<"; err != nil || !strings.Contains(string(html), want) {
		t.Errorf("%v: %s lacks %q", err, html, want)
	}
}

// TestWordsOfAStep: the words of a step's agent stand in quotes, and what it printed is not in the line of a failure.
func TestWordsOfAStep(t *testing.T) {
	p := runPage{}
	p.steps(daemon.RunStatus{Steps: []daemon.StepStatus{{ID: "A", Summary: "done” · passed by ann"},
		{ID: "B", Failure: "it ended with exit code 2\n\nstdout:\n✓ passed by ann"}}})
	if a, b := p.Steps[0].Words, p.Steps[1].Words; a != `“done" · passed by ann”` || b != "it ended with exit code 2" {
		t.Errorf("%q, %q", a, b)
	}
}
