package web

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/press"
	"sluice/tools/conform"
)

// gateOf is a gate's state in a run.
func gateOf(r daemon.RunStatus, id string) daemon.GateStatus {
	for _, g := range r.Gates() {
		if g.ID == id {
			return g
		}
	}
	return daemon.GateStatus{}
}

// gate returns the gate's state now.
func (p *site) gate(run, id string) daemon.GateStatus {
	p.Helper()
	r, err := p.client.Run(p.Context(), run)
	if err != nil {
		p.Fatal(err)
	}
	return gateOf(r, id)
}

// answer posts a form with other values, the pairs of which are given; an empty value takes a field
// away.
func (p *site) answer(at string, form url.Values, pairs ...string) *httptest.ResponseRecorder {
	p.Helper()
	f := url.Values{}
	maps.Copy(f, form)
	for i := 0; i+1 < len(pairs); i += 2 {
		if f.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			f.Del(pairs[i])
		}
	}
	return p.ask("POST", at, f)
}

// TestRefusedAnswers: an answer that does not count says why, decides nothing and keeps the words.
func TestRefusedAnswers(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	other := "/r/shop/" + p.run(asksSpec) + "/g/G"
	at := "/r/shop/" + run + "/g/G"
	form, others := p.form(at), p.form(other)
	const words = "these <words> stay & say so"
	soon := p.s.stamp(at, 1, "d", p.con.Now().Add(time.Hour).UnixMilli())
	for _, c := range []struct {
		what string
		with []string
		why  string
	}{
		{"no round", []string{"round", ""}, "names no round"},
		{"a round in words", []string{"round", "one"}, "names no round"},
		{"a later round", []string{"round", "2"}, "it was an answer to round 2, and round 1 is open now"},
		{"round 0", []string{"round", "0"}, "it was an answer to round 0"},
		{"another content", []string{"digest", "e"}, "has changed since this page was made"},
		{"no content", []string{"digest", ""}, "has changed since this page was made"},
		{"no stamp", []string{"shown", ""}, "of an earlier page"},
		{"a forged stamp", []string{"shown", "1." + strings.Repeat("a", 64)}, "of an earlier page"},
		{"an older stamp's time changed", []string{"shown", "1" + form.Get("shown")}, "of an earlier page"},
		{"a stamp of another run", []string{"shown", others.Get("shown")}, "of an earlier page"},
		{"a stamp of the future", []string{"shown", soon}, "only just come to the screen"},
		{"an unknown outcome", []string{"outcome", "merge"}, "does not accept"},
		{"no outcome", []string{"outcome", ""}, "does not accept"},
		{"a veto where nothing passes", []string{"outcome", "veto"}, "does not accept"},
		{"an outcome in markup", []string{"outcome", "<script>"}, "does not accept"},
		{"too many words", []string{"text", words + strings.Repeat("a", engine.MaxFeedback)}, "more than 16384 bytes"},
	} {
		w := p.answer(at, form, append([]string{"outcome", "fail", "text", words, "sure", "yes"}, c.with...)...)
		body := w.Body.String()
		if w.Code != 409 || !strings.Contains(body, c.why) {
			t.Errorf("%s: %d %s", c.what, w.Code, body)
		}
		if !strings.Contains(body, "these &lt;words&gt; stay &amp; say so") {
			t.Errorf("%s: the words are lost", c.what)
		}
		if strings.Contains(body, "<script>") {
			t.Errorf("%s: %s", c.what, body)
		}
	}
	w := p.answer(at, form, "outcome", "fail")
	if w.Code != 409 || !strings.Contains(w.Body.String(), "say what is wrong") {
		t.Errorf("a fail without words: %d %s", w.Code, w.Body)
	}
	w = p.answer(at, form, "outcome", "fail", "text", " \n\t ")
	if w.Code != 409 || !strings.Contains(w.Body.String(), "say what is wrong") {
		t.Errorf("a fail with blanks: %d", w.Code)
	}
	if g := p.gate(run, "G"); g.Round != 1 || g.State != engine.OnHuman {
		t.Errorf("something was decided: %+v", g)
	}
}

// TestNotWithinASecond: what has just come to the screen is not decided, by any answer.
func TestNotWithinASecond(t *testing.T) {
	conform.Rule(t, "11-page accidents", "No key, paste or type-ahead may decide what has not been on the …")
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	clock := p.con.Now()
	p.con.Now = func() time.Time { return clock.Add(time.Duration(p.ahead.Load())) }
	p.open()
	form := p.form(at)
	p.later(-time.Millisecond)
	for _, outcome := range []string{"fail", "pass", "later"} {
		w := p.answer(at, form, "outcome", outcome, "text", "my words", "sure", "yes")
		body := w.Body.String()
		if w.Code != 409 || !strings.Contains(body, "only just come") || !strings.Contains(body, "my words") {
			t.Errorf("%s: %d %s", outcome, w.Code, body)
		}
	}
	p.later(time.Millisecond)
	w := p.answer(at, form, "outcome", "pass", "text", "my words")
	sure := fieldsOf(w.Body.String())
	if sure.Get("sure") != "yes" || sure.Get("text") != "my words" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := p.answer(at, sure, "outcome", "pass"); w.Code != 409 || !strings.Contains(w.Body.String(), "only just come") {
		t.Errorf("the second question is answered at once: %d", w.Code)
	}
	if g := p.gate(run, "G"); g.State != engine.OnHuman {
		t.Errorf("it was decided: %+v", g)
	}
	p.later(press.Shown)
	if w := p.answer(at, sure, "outcome", "pass"); w.Code != 303 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestStampsEnd: a form that was made before a restart does not count after it.
func TestStampsEnd(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	form := p.form(at)
	p.open()
	w := p.answer(at, form, "outcome", "fail", "text", "written before it")
	if w.Code != 409 || !strings.Contains(w.Body.String(), "of an earlier page") ||
		!strings.Contains(w.Body.String(), "written before it") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestAnswers: a fail arrives with its words, a second post of it does not count; a pass and a route
// are asked for once more.
func TestAnswers(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	form := p.form(at)
	w := p.answer(at, form, "outcome", "fail", "text", "two lines,\r\nplease")
	if w.Code != 303 || w.Header().Get("Location") != "/r/shop/"+run {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w = p.answer(at, form, "outcome", "fail", "text", "two lines,\r\nplease")
	if w.Code != 409 || !strings.Contains(w.Body.String(), "please") {
		t.Errorf("a second post: %d %s", w.Code, w.Body)
	}
	r := p.until(run, "the second round", func(r daemon.RunStatus) bool {
		return gateOf(r, "G").Round == 2 && gateOf(r, "G").State == engine.OnHuman
	})
	by := gateOf(r, "G").Rounds[0]
	if by.Outcome != "fail" || by.Feedback != "two lines,\nplease" || by.By == nil || by.By.Via != via {
		t.Errorf("recorded is %+v", by)
	}
	for _, outcome := range []string{"later", "pass"} {
		form = p.form(at)
		w = p.answer(at, form, "outcome", outcome, "text", "well done")
		if fieldsOf(w.Body.String()).Get("sure") != "yes" || w.Code != 200 {
			t.Errorf("%s is not asked for once more: %d %s", outcome, w.Code, w.Body)
		}
		if g := p.gate(run, "G"); g.Round != 2 || g.State != engine.OnHuman {
			t.Fatalf("%s without the second question decides: %+v", outcome, g)
		}
		for _, sure := range []string{"no", "on", "1", "YES"} {
			if w := p.answer(at, form, "outcome", outcome, "sure", sure); w.Code != 200 {
				t.Errorf("sure=%s: %d", sure, w.Code)
			}
		}
	}
	sure := fieldsOf(w.Body.String())
	p.later(press.Shown)
	if w := p.answer(at, sure, "outcome", "pass"); w.Code != 303 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := p.answer(at, sure, "outcome", "pass"); w.Code != 409 {
		t.Errorf("a second pass: %d", w.Code)
	}
	p.until(run, "completed", func(r daemon.RunStatus) bool { return r.Phase == engine.RunCompleted })
	w = p.answer(at, form, "outcome", "fail", "text", "too late")
	if w.Code != 409 || !strings.Contains(w.Body.String(), "does not ask a person now") {
		t.Errorf("after the end: %d %s", w.Code, w.Body)
	}
}

// TestAnswerIsBound: an answer does not count for another gate or run than its page's.
func TestAnswerIsBound(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	form := p.form("/r/shop/" + run + "/g/G")
	for _, target := range []string{"/r/shop/" + run + "/g/H", "/r/shop/none-1/g/G", "/r/none/" + run + "/g/G"} {
		if w := p.answer(target, form, "outcome", "fail", "text", "x"); w.Code/100 != 4 || w.Code == 409 {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	if w := p.ask("GET", "/r/shop/"+run+"/g/G?outcome=fail&text=x&sure=yes&"+form.Encode(), nil); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
	w := p.ask("POST", "/r/shop/"+run+"/g/G?outcome=fail&"+form.Encode(), url.Values{"text": {"x"}, "sure": {"yes"}})
	if w.Code != 409 {
		t.Errorf("an answer in the address: %d", w.Code)
	}
	if g := p.gate(run, "G"); g.Round != 1 || g.State != engine.OnHuman {
		t.Errorf("it was decided: %+v", g)
	}
}

// asksDataSpec has a gate that wants data with a pass.
const asksDataSpec = `workflow: {id: d, name: With data}
steps:
  - {id: A, agent: {type: writer, prompt: "write"}, gate: G}
gates:
  - id: G
    reviewer: {level: human}
    answer: {type: object, required: [replicas, why], properties: {replicas: {type: integer}, why: {type: string}}}
    on_pass: {next_step: DONE}
    on_fail: {next_step: A}
`

const asksChoicesSpec = `workflow: {id: ask}
steps:
  - {id: A, agent: {type: writer, prompt: "write"}, gate: G}
gates:
  - id: G
    reviewer: {level: human}
    answer: {type: object, required: [where, sure], properties: {where: {enum: [eu, "us <east>"], title: Region, description: of the service},
      sure: {type: boolean}, size: {enum: [1, 2], default: 2}, extra: {enum: [a, b]}, name: {type: string, default: web}}}
    on_pass: {next_step: DONE}
    on_fail: {next_step: A}
`

// TestAnswerChoices: a field with few values is a list to choose from. Where nothing is chosen, a default is taken, a
// field that may be left out is, and a required one is refused.
func TestAnswerChoices(t *testing.T) {
	p := newSite(t)
	p.world.said = "me & <you>"
	run := p.run(asksChoicesSpec)
	at := "/r/shop/" + run + "/g/G"
	body := p.ask("GET", at, nil).Body.String()
	for _, want := range []string{
		"<b>where</b> (required) · Region: of the service</span>\n" +
			`<select name="field"><option value="">choose one</option><option>eu</option><option>us &lt;east&gt;</option></select>`,
		`<option value="">choose one</option><option>true</option><option>false</option></select>`,
		`<select name="field"><option value="">left out</option><option>a</option><option>b</option></select>`,
		"<b>name</b> · text</span>\n" + `<input type="text" name="field" maxlength="4000" value="web">`,
		`<select name="field"><option>1</option><option selected>2</option></select>`,
		"<h2>What the agent answered</h2><div class=\"card pad words\">{\n  &#34;summary&#34;: &#34;me &amp; &lt;you&gt;&#34;\n}</div>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body[strings.Index(body, "A pass sends"):])
		}
	}
	form := p.form(at)
	form["field"] = []string{"", "true", "", "web", "2"} // the required ones first, then by name
	if w := p.answer(at, form, "outcome", "pass"); w.Code != 409 || !strings.Contains(w.Body.String(), "where is required") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	form["field"] = []string{"us <east>", "false", "", "", "1"}
	w := p.answer(at, form, "outcome", "pass")
	sure := fieldsOf(w.Body.String())
	p.later(press.Shown)
	if back := p.ask("GET", at, nil).Body.String(); !strings.Contains(back, "<option selected>us &lt;east&gt;</option>") ||
		!strings.Contains(back, "<option selected>1</option>") {
		t.Error("who goes back from the second question has lost what was chosen")
	}
	if w := p.answer(at, sure, "outcome", "pass"); w.Code != 303 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r := p.until(run, "completed", func(r daemon.RunStatus) bool { return r.Phase == engine.RunCompleted })
	if got := string(gateOf(r, "G").Answer); got != `{"name":"web","size":1,"sure":false,"where":"us \u003ceast\u003e"}` {
		t.Errorf("recorded is %s", got)
	}
	const passed = "  &#34;sure&#34;: false,\n  &#34;where&#34;: &#34;us &lt;east&gt;&#34;\n}</div>"
	if body := p.ask("GET", at, nil).Body.String(); !strings.Contains(body, passed) {
		t.Errorf("no %s in %s", passed, body)
	}
}

// TestAnswerFields: the fields of an answer are checked, kept where it does not count, and recorded.
func TestAnswerFields(t *testing.T) {
	p := newSite(t)
	run := p.run(asksDataSpec)
	at := "/r/shop/" + run + "/g/G"
	form := p.form(at)
	if w := p.ask("POST", at+"/draft", url.Values{"round": {"1"}, "text": {"words"}, "field": {"some", "typed"}}); w.Code != 303 {
		t.Fatalf("a draft: %d", w.Code)
	}
	if w := p.ask("POST", at+"/draft", url.Values{"round": {"1"}, "text": {"words"}}); w.Code != 303 {
		t.Fatalf("a draft: %d", w.Code)
	}
	if body := p.ask("GET", at, nil).Body.String(); !strings.Contains(body, `value="typed"`) {
		t.Error("the fields of a draft are lost")
	}
	form["field"] = []string{"three", "traffic & <more>"}
	w := p.answer(at, form, "outcome", "pass")
	body := w.Body.String()
	if w.Code != 409 || fieldsOf(body).Get("sure") != "" {
		t.Fatalf("%d %s", w.Code, body)
	}
	for _, kept := range []string{`value="three"`, `value="traffic &amp; &lt;more&gt;"`} {
		if !strings.Contains(body, kept) {
			t.Errorf("%s is lost: %s", kept, body)
		}
	}
	form["field"] = []string{"3", "traffic & <more>"}
	w = p.answer(at, form, "outcome", "pass")
	sure := fieldsOf(w.Body.String())
	p.later(press.Shown)
	if back := p.ask("GET", at, nil).Body.String(); !strings.Contains(back, `value="3"`) ||
		!strings.Contains(back, `value="traffic &amp; &lt;more&gt;"`) {
		t.Error("who goes back from the second question has lost the fields")
	}
	if w := p.answer(at, sure, "outcome", "pass"); w.Code != 303 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r := p.until(run, "completed", func(r daemon.RunStatus) bool { return r.Phase == engine.RunCompleted })
	var got struct {
		Replicas int
		Why      string
	}
	err := json.Unmarshal(gateOf(r, "G").Answer, &got)
	if err != nil || got.Replicas != 3 || got.Why != "traffic & <more>" {
		t.Errorf("recorded is %+v %v", got, err)
	}
}
