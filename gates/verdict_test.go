package gates

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/findings"
	jsonschema "sluice/internal/schema"
	"sluice/internal/text/hostile"
	hold "sluice/tools/conform"
)

func block3(s string) string { return "```json\n" + s + "\n```\n" }

func schemaOf(s string) *engine.Schema { return &engine.Schema{Source: json.RawMessage(s)} }

// TestReadVerdict: what is read where, and what is refused with which words. want is the outcome
// or, after "!", a part of the error.
func TestReadVerdict(t *testing.T) {
	hold.Rule(t, "7-agents read order", "structured, answer file, the last object of the reply")
	hold.Rule(t, "7-agents one verdict", "two verdicts that differ, or a file that contradicts the output: inconclusive")
	hold.Rule(t, "9-one-tree verdict", "the program's final answer counts, a file of the format text alone; what disagrees is inconclusive")
	hold.Rule(t, "field ask 6", "what cannot be read as a verdict passes nothing")
	hold.Rule(t, "1-language rule 6", "no answer and a wrong one are inconclusive")
	const pass, fail = `{"verdict":"pass"}`, `{"verdict":"fail","feedback":"no"}`
	out := func(s string) VerdictInput {
		return VerdictInput{Output: []byte(s), Allowed: []string{"pass", "fail", "replan"}}
	}
	with := func(in VerdictInput, change func(*VerdictInput)) VerdictInput { change(&in); return in }
	for _, c := range []struct {
		name string
		in   VerdictInput
		want string
	}{
		{"structured first", with(out(block3(fail)), func(in *VerdictInput) { in.Structured = []byte(fail) }), "fail"},
		{"structured, and a word of another kind", with(out("The JSON `"+pass+"` would be wrong."), func(in *VerdictInput) { in.Structured = []byte(fail) }), "?line 1 of the reply says pass"},
		{"structured and reply differ", with(out(block3(pass)), func(in *VerdictInput) { in.Structured = []byte(fail) }), "?the structured output says fail, line 2 of the reply says pass"},
		{"structured null is none", with(out(block3(pass)), func(in *VerdictInput) { in.Structured = []byte(" null\n") }), "pass"},
		{"structured broken stands in the way", with(out(block3(pass)), func(in *VerdictInput) { in.Structured = []byte(`{"verdict":`) }), "!the structured output: not whole"},
		{"file before reply", with(out("See the file."), func(in *VerdictInput) { in.AnswerFile = []byte(fail) }), "fail"},
		{"file and reply agree", with(out(block3(fail)), func(in *VerdictInput) { in.AnswerFile = []byte(`{"feedback":"other words","verdict":"fail"}`) }), "fail"},
		{"file and reply differ", with(out(block3(pass)), func(in *VerdictInput) { in.AnswerFile = []byte(fail) }), "?the answer file says fail, line 2 of the reply says pass"},
		{"file and a reply of JSON differ", with(out(fail), func(in *VerdictInput) { in.AnswerFile = []byte(pass) }), "?the answer file says pass, the reply says fail"},
		{"file, and a block of the reply that is broken", with(out(block3(`{"verdict":"fail",}`)), func(in *VerdictInput) { in.AnswerFile = []byte(pass) }), "?line 2 of the reply cannot be read"},
		{"file, and a reply that is cut off", with(out("```json\n{\"verdict\": \"fa"), func(in *VerdictInput) { in.AnswerFile = []byte(pass) }), "?ends in the middle of JSON"},
		{"file, and a block that is no verdict", with(out(block3(`{"name":"pkg"}`)), func(in *VerdictInput) { in.AnswerFile = []byte(pass) }), "pass"},
		{"no file counts beside a final answer", with(out(""), func(in *VerdictInput) { in.ByReply = true; in.AnswerFile = []byte(pass) }), "!the answer file does not count: the verdict is what the last message says"},
		{"a file stands in no final answer's way", with(out(block3(pass)), func(in *VerdictInput) { in.ByReply = true; in.AnswerFile = []byte("{") }), "pass"},
		{"a file that says the same", with(out(block3(pass)), func(in *VerdictInput) {
			in.ByReply, in.WantToken = true, "T"
			in.AnswerFile = []byte(`{"verdict":"pass","token":"T"}`)
		}), "pass"},
		{"a file that says another thing", with(out(block3(pass)), func(in *VerdictInput) {
			in.ByReply, in.WantToken = true, "T"
			in.AnswerFile = []byte(`{"verdict":"fail","token":"T"}`)
		}), "?line 2 of the reply says pass, the answer file says fail"},
		{"a line says another thing", out("First:\n" + fail + "\nThen:\n" + block3(pass)), "?line 5 of the reply says pass, line 2 of the reply says fail"},
		{"a line after it says another thing", out(block3(pass) + "\n" + fail + "\n"), "?line 5 of the reply says fail, line 2 of the reply says pass"},
		{"structured, and a line that says another thing", with(out("So:\n"+pass), func(in *VerdictInput) { in.Structured = []byte(fail) }), "?the structured output says fail, line 2 of the reply says pass"},
		{"a line that says the same", out("First:\n" + pass + "\n" + block3(pass)), "pass"},
		{"a line that is no verdict", out("First:\n{\"name\":\"pkg\"}\n{not JSON}\n" + block3(pass)), "pass"},
		{"a file of another that says another thing", with(out(block3(pass)), func(in *VerdictInput) {
			in.ByReply, in.WantToken = true, "T"
			in.AnswerFile = []byte(`{"verdict":"fail","token":"U"}`)
		}), "pass"},
		{"file broken stands in the way", with(out(block3(pass)), func(in *VerdictInput) { in.AnswerFile = []byte("pass") }), "!the answer file"},
		{"file with our token", with(out(""), func(in *VerdictInput) { in.WantToken = "T"; in.AnswerFile = []byte(`{"verdict":"fail","token":"T"}`) }), "fail"},
		{"file of another attempt", with(out(block3(fail)), func(in *VerdictInput) { in.WantToken = "T"; in.AnswerFile = []byte(`{"verdict":"pass","token":"U"}`) }), "fail"},
		{"file of another attempt, alone", with(out(""), func(in *VerdictInput) { in.WantToken = "T"; in.AnswerFile = []byte(`{"verdict":"pass","token":"U"}`) }), "!its token is not this attempt's"},
		{"file without a token", with(out("  "), func(in *VerdictInput) { in.WantToken = "T"; in.AnswerFile = []byte(pass) }), "!it has no token"},
		{"file with a token that is no text", with(out(""), func(in *VerdictInput) { in.WantToken = "T"; in.AnswerFile = []byte(`{"verdict":"pass","token":["T"]}`) }), "!it has no token"},
		{"token is a key like others where none is wanted", with(out(""), func(in *VerdictInput) {
			in.AnswerFile = []byte(`{"verdict":"pass","token":"x"}`)
			in.Schema = schemaOf(`{"required":["token"]}`)
		}), "pass"},

		{"whole reply", out(pass), "pass"},
		{"whole reply in white space", out("\n\t " + pass + "\r\n "), "pass"},
		{"a block", out("I looked.\n" + block3(pass) + "Thanks."), "pass"},
		{"two verdicts that differ", out(block3(pass) + "But:\n" + block3(fail)), "?says fail, line 2 of the reply says pass"},
		{"two, the other way", out(block3(fail) + "mended:\n" + block3(pass)), "?says pass, line 2 of the reply says fail"},
		{"two in different spelling", out(block3(`{"Verdict":"Fail"}`) + block3(pass)), "?says pass, line 2 of the reply says Fail"},
		{"two that agree", out(block3(`{"verdict":"pass","score":90}`) + "Again:\n" + block3(pass)), "pass"},
		{"two scores that differ where the word decides", out(block3(`{"verdict":"pass","score":90}`) + block3(`{"verdict":"pass","score":10}`)), "pass"},
		{"two scores that differ where the score decides", with(out(block3(`{"score":90}`)+block3(`{"score":10}`)), func(in *VerdictInput) { in.Computed, in.Allowed = true, nil }), "?differ in score"},
		{"two that agree where the score decides", with(out(block3(`{"score":90,"feedback":"a"}`)+block3(`{"verdict":"x","score":90,"feedback":"b"}`)), func(in *VerdictInput) { in.Computed, in.Allowed = true, nil }), "x"},
		{"a word that is gone", with(out(block3(`{"verdict":"x","score":90}`)+block3(`{"score":90}`)), func(in *VerdictInput) { in.Computed, in.Allowed = true, nil }), "?differ in verdict"},
		{"a word and none where the score decides", with(out(block3(`{"name":"pkg","feedback":"a"}`)+block3(`{"score":90,"feedback":"b"}`)), func(in *VerdictInput) { in.Computed, in.Allowed = true, nil }), ""},
		{"three, the first differs", out(block3(fail) + block3(pass) + block3(pass)), "?line 2 of the reply says fail"},
		{"another is broken", out(block3(`{"verdict":"fail",}`) + block3(pass)), "?line 2 of the reply cannot be read"},
		{"another block is of something else", out(block3(`{"verdicts":["fail"]}`) + block3(`[1]`) + block3(pass)), "pass"},
		{"last block broken", out(block3(pass) + block3(`{"verdict":"fail",}`)), "!line 5 of the reply"},
		{"last block empty", out(block3(pass) + block3("")), "pass"},
		{"last block not closed", out(block3(pass) + "```json\n" + fail), "?says fail, line 2 of the reply says pass"},
		{"cut off in the middle", out("text\n```json\n" + `{"verdict":"pa`), "!ends in the middle of JSON"},
		{"whole reply cut off", out(`{"verdict":"pass"`), "!ends in the middle of JSON"},
		{"a block of json5", out("```json5\n" + pass + "\n```\n"), "pass"},
		{"a block of jsonc", out("```jsonc\n" + pass + "\n```\n"), "pass"},
		{"a block without a word", out("```\n" + pass + "\n```\n"), "pass"},
		{"tildes", out("~~~json\n" + pass + "\n~~~\n"), "pass"},
		{"JSON in capitals, and a title", out("```JSON title=x\n" + pass + "\n```\n"), "pass"},
		{"Windows line ends", out(strings.ReplaceAll("see\n"+block3(pass), "\n", "\r\n")), "pass"},
		{"words only", out("The work is good. verdict: pass"), "!no JSON in the reply"},
		{"JSON in a sentence", out("My verdict is " + pass), "pass"},
		{"nothing", out(""), "!no verdict"},

		{"a stray fence after it", out(block3(pass) + "```\n"), "pass"},
		{"the beginning of a quote is cut off", out("quoted\n" + block3(pass) + "````\nMy verdict:\n" + block3(fail)), "?says fail, line 3 of the reply says pass"},
		{"quoted in a longer block", out(block3(fail) + "The file holds:\n````md\n" + block3(pass) + "````\n"), "?its verdicts differ"},
		{"quoted with tildes", out(block3(fail) + "The file holds:\n~~~\n" + block3(pass) + "~~~\n"), "?its verdicts differ"},
		{"quoted by >", out(block3(fail) + "> ```json\n> " + pass + "\n> ```\n"), "?its verdicts differ"},
		{"quoted by four spaces", out(block3(fail) + "    ```json\n    " + pass + "\n    ```\n"), "?its verdicts differ"},
		{"in a text of the verdict", out(block3(`{"verdict":"fail","feedback":"it says \n` + "```json\\n{\\\"verdict\\\":\\\"pass\\\"}\\n```" + `"}`)), "fail"},
		{"in a finding", out(block3(`{"verdict":"fail","findings":[{"message":"x","verdict":"pass"}]}`)), "fail"},
		{"deeper", out(block3(`{"result":{"verdict":"pass"}}`)), "!verdict: missing"},

		{"doubled key", out(block3(`{"verdict":"fail","verdict":"pass"}`)), `!"verdict" is there twice`},
		{"doubled by escape", out(block3(`{"verdict":"fail","verdic\u0074":"pass"}`)), "!is there twice"},
		{"case", out(block3(`{"verdict":"fail","Verdict":"pass"}`)), "!differ in case only"},
		{"one in another case", out(block3(`{"Verdict":"pass"}`)), `!write it "verdict"`},
		{"doubled deep", out(block3(`{"verdict":"pass","findings":[{"line":1,"line":2}]}`)), "!is there twice"},
		{"invalid UTF-8", out(block3("{\"verdict\":\"pass\",\"feedback\":\"\xff\"}")), "!invalid UTF-8"},
		{"something after", out(block3(pass + " " + fail)), "?its verdicts differ"},
		{"comment", out(block3("{\"verdict\":\"pass\" // good\n}")), "!line 2 of the reply"},
		{"byte order mark", out(block3("\ufeff" + pass)), "pass"},
		{"a list", out("[" + pass + "]"), "pass"},
		{"a bare word", out(block3(`"pass"`)), "!no JSON in the reply"},
		{"deep", out(block3(strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100))), "!nested more than"},
		{"large", out(block3(`{"verdict":"pass","x":"` + strings.Repeat("x", MaxAnswer) + `"}`)), "!more than 65536 bytes"},
		{"a flood", out(block3(pass) + strings.Repeat("x", MaxReply)), "!more than 1048576 bytes"},

		{"unknown word", out(block3(`{"verdict":"ok"}`)), `!verdict: want one of pass, fail, replan; found "ok"`},
		{"near word", out(block3(`{"verdict":"repaln"}`)), `!did you mean "replan"?`},
		{"Pass", out(block3(`{"verdict":"Pass"}`)), `!did you mean "pass"?`},
		{"word with a space", out(block3(`{"verdict":"pass "}`)), "!want one of"},
		{"fullwidth", out(block3(`{"verdict":"ｐａｓｓ"}`)), "!want one of"},
		{"true", out(block3(`{"verdict":true}`)), "!verdict: want a text"},
		{"null", out(block3(`{"verdict":null}`)), "!verdict: missing"},
		{"empty", out(block3(`{"verdict":""}`)), "!want one of"},
		{"list of words", out(block3(`{"verdict":["pass"]}`)), "!verdict: want a text"},
		{"a person's word is not a reviewer's", out(block3(`{"verdict":"veto"}`)), "!want one of"},
		{"any word, but a word", VerdictInput{Output: []byte(block3(`{"verdict":"a b\u001b[0m"}`))}, "!want one word"},
		{"any word", VerdictInput{Output: []byte(block3(`{"verdict":"revise"}`))}, "revise"},

		{"score too high", out(block3(`{"verdict":"pass","score":1e9}`)), "!score: want a number from 0 to 100"},
		{"score below", out(block3(`{"verdict":"pass","score":-1}`)), "!score: want a number from 0 to 100"},
		{"score NaN", out(block3(`{"verdict":"pass","score":NaN}`)), "!line 2 of the reply"},
		{"score as text", out(block3(`{"verdict":"pass","score":"90"}`)), "!score: want a number"},
		{"score beyond numbers", out(block3(`{"verdict":"pass","score":1e999}`)), "!out of range"},
		{"score of many digits", out(block3(`{"verdict":"pass","score":1e-999999999}`)), "pass"},
		{"scores as a list", out(block3(`{"verdict":"pass","scores":[1]}`)), "!scores: want an object"},
		{"scores as text", out(block3(`{"verdict":"pass","scores":{"a":"b"}}`)), "!scores: a: want a number"},
		{"findings as text", out(block3(`{"verdict":"pass","findings":"none"}`)), "!findings: want a list"},
		{"finding as number", out(block3(`{"verdict":"pass","findings":[7]}`)), "!findings[0]: want an object"},
		{"line as text", out(block3(`{"verdict":"pass","findings":[{"line":"12"}]}`)), "!line: want a number"},
		{"all at once", out(block3(`{"verdict":"ok","score":"1"}`)), "!; score: want a number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, err := ReadVerdict(c.in)
			if part, neither := strings.CutPrefix(c.want, "?"); neither {
				if err != nil || j.Outcome != "" || j.Score != nil || !strings.Contains(j.Inconclusive, part) {
					t.Fatalf("got %+v, error %v; want inconclusive with %q", j, err, part)
				}
				return
			}
			if part, bad := strings.CutPrefix(c.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Fatalf("got %q, error %v; want an error with %q", j.Outcome, err, part)
				}
				if j.Outcome != "" {
					t.Errorf("an outcome %q beside the error", j.Outcome)
				}
				return
			}
			if err != nil || j.Outcome != c.want || j.Inconclusive != "" {
				t.Fatalf("got %+v, error %v; want %s", j, err, c.want)
			}
		})
	}
}

func TestReadVerdictWhole(t *testing.T) {
	j, err := ReadVerdict(VerdictInput{Allowed: []string{"pass", "fail"}, Output: []byte(block3(`{"verdict":"fail","score":42.5,"scores":{"a":1,"b":null},
		"feedback":"\u001b[1mred\u001b[0m\nline","findings":[{"severity":"high","file":"a.go","line":3,"message":"x\u202ey","rule":{"id":7}},"just words"],"extra":[1,2.50]}`))})
	if err != nil {
		t.Fatal(err)
	}
	if *j.Score != 42.5 || j.Scores["a"] != 1 || len(j.Scores) != 1 || j.Feedback != "red\nline" {
		t.Errorf("read %+v", j)
	}
	if want := `[{"file":"a.go","line":3,"message":"x<U+202E>y","rule":{"id":7},"severity":"high"},{"message":"just words"}]`; string(j.Findings) != want {
		t.Errorf("findings %s, want %s", j.Findings, want)
	}
	if !strings.Contains(string(j.Answer), `"extra":[1,2.50]`) {
		t.Errorf("answer %s", j.Answer)
	}
	list := findings.List(j.Findings)
	first := findings.Finding{Severity: "high", File: "a.go", Line: 3, Message: "x<U+202E>y"}
	if len(list) != 2 || list[0] != first || list[1].Message != "just words" {
		t.Errorf("findings read as %+v", list)
	}
}

func TestRubric(t *testing.T) {
	hold.Rule(t, "1-language rubric", "the score is the mean of the rubric; a missing point is a fault")
	in := VerdictInput{Rubric: []string{"a", "b", "c"}, Computed: true, Output: []byte(`{"score":100,"scores":{"a":10,"b":20,"c":31,"d":100}}`)}
	j, err := ReadVerdict(in)
	if err != nil || *j.Score != 20.33 || j.Outcome != "" {
		t.Fatalf("score %v, %+v, %v: want the mean of the rubric, 20.33", *j.Score, j, err)
	}
	in.Output = []byte(`{"scores":{"a":70,"b":70,"c":69.99}}`)
	if j, err = ReadVerdict(in); err != nil || *j.Score >= 70 {
		t.Errorf("score %v, %v: the mean is rounded up to 70", *j.Score, err)
	}
	in.Output = []byte(`{"scores":{"a":70.1,"b":70.1,"c":70.1}}`)
	if j, err = ReadVerdict(in); err != nil || *j.Score != 70.1 {
		t.Errorf("score %v, %v: want 70.1", *j.Score, err)
	}
	in.Output = []byte(`{"score":100,"scores":{"a":10}}`)
	if _, err = ReadVerdict(in); err == nil || !strings.Contains(err.Error(), "scores: missing b, c: score each of a, b, c from 0 to 100") {
		t.Errorf("error %v", err)
	}
	in.Output = []byte(`{"score":100}`)
	if _, err = ReadVerdict(in); err == nil {
		t.Error("a score without the rubric is taken")
	}
}

func TestComputedGate(t *testing.T) {
	j, err := ReadVerdict(VerdictInput{Computed: true, Allowed: []string{"pass", "fail"}, Output: []byte(`{"score":80}`)})
	if err != nil || j.Outcome != "" || *j.Score != 80 {
		t.Errorf("%+v, %v", j, err)
	}
	if _, err = ReadVerdict(VerdictInput{Computed: true, Allowed: []string{"pass", "fail"}, Output: []byte(`{"verdict":"okay"}`)}); err == nil {
		t.Error("an unknown word is taken because the gate computes")
	}
}

func TestReviewerThatFailed(t *testing.T) {
	hold.Rule(t, "field ask 6", "a reviewer that exits 1 passes nothing, whatever it printed")
	hold.Rule(t, "1-language rule 6", "a reviewer that crashed is inconclusive")
	j, err := ReadVerdict(VerdictInput{ExitCode: 1, Output: []byte(`{"verdict":"pass"}`)})
	if err != nil || j.Outcome != "" || !strings.Contains(j.Inconclusive, "exit code 1") {
		t.Errorf("%+v, %v", j, err)
	}
	if j := Unread(errors.New("x")); j.Inconclusive == "" || j.Outcome != "" {
		t.Errorf("%+v", j)
	}
}

func TestCorrection(t *testing.T) {
	hold.Rule(t, "field ask 6", "the error is fed back")
	_, err := ReadVerdict(VerdictInput{Allowed: []string{"pass", "fail"}, Output: []byte(block3(`{"verdict":"ok"}`))})
	first, last := Correction(err, 1, false), Correction(err, MaxCorrections, true)
	for _, s := range []string{first, last} {
		if !strings.Contains(s, `verdict: want one of pass, fail; found "ok"`) || !strings.Contains(s, "```json") {
			t.Errorf("correction: %s", s)
		}
	}
	if !strings.Contains(first, "SLUICE_ANSWER") || strings.Contains(last, "SLUICE_ANSWER") {
		t.Errorf("the file: %s %s", first, last)
	}
	if first == last || !strings.Contains(last, "last time") {
		t.Errorf("the last correction does not say so: %s", last)
	}
	if s := Correction(fmt.Errorf("%s", hostile.Flood(1<<20)), 1, false); len(s) > 4<<10 {
		t.Errorf("a correction of %d bytes", len(s))
	}
}

func TestCommandVerdict(t *testing.T) {
	for _, c := range []struct {
		exit         int
		outcome, has string
	}{{0, "pass", ""}, {1, "fail", "exit code 1"}, {2, "fail", "last words"}, {125, "fail", ""}, {255, "fail", ""}, {126, "", "126"}, {127, "", "last words"}, {-1, "", "did not start"}} {
		j := CommandVerdict(c.exit, "first\n\x1b[31mlast words\x1b[0m\n")
		if j.Outcome != c.outcome || (j.Inconclusive != "") != (c.outcome == "") || !strings.Contains(j.Feedback+j.Inconclusive, c.has) || strings.Contains(j.Feedback, "\x1b") {
			t.Errorf("exit %d: %+v", c.exit, j)
		}
	}
	for out, want := range map[string]string{
		"stdout:\nwords.py:3: too long\nstderr:\nmake: Error 1\n": "exit code 1: “words.py:3: too long”\n\nstdout:\nwords",
		"stderr:\n\n\x1b[31mno\x1b[0m\tgood\u202e\n":              "exit code 1: “no good",
		"": "the reviewer's command ended with exit code 1",
	} {
		j := CommandVerdict(1, out)
		if line, _, _ := strings.Cut(j.Feedback, "\n"); !strings.HasPrefix(j.Feedback, want) || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("%q: %q", out, j.Feedback)
		}
	}
	for _, out := range []string{"stdout:\nno good\n", "stderr:\nno good", "no good"} { // said once
		if j := CommandVerdict(1, out); j.Feedback != "exit code 1: “no good”" {
			t.Errorf("%q: %q", out, j.Feedback)
		}
	}
	if j := CommandVerdict(1, strings.Repeat("x", 1<<20)+"the end"); len(j.Feedback) > engine.MaxFeedback || !strings.HasSuffix(j.Feedback, "the end") {
		t.Errorf("feedback of %d bytes", len(j.Feedback))
	}
}

func TestAnswers(t *testing.T) {
	hold.Rule(t, "1-language answer", "held to its schema, filled from its defaults")
	const schema = `{"type":"object","required":["plan","risk"],"additionalProperties":false,"properties":{"plan":{"type":"string"},"risk":{"enum":["low","high"],"default":"low"}}}`
	for _, c := range []struct{ in, schema, want string }{
		{`{"plan":"x"}`, schema, `{"plan":"x","risk":"low"}`},
		{` {"risk":"high","plan":"<a>"} `, schema, `{"plan":"<a>","risk":"high"}`},
		{`{"plan":1}`, schema, "!plan: got number, want string"},
		{`{}`, schema, "!missing property 'plan'"},
		{`{"plan":"x","risk":"none","more":1}`, schema, "!risk: "},
		{`{"plan":"x","plan":"y"}`, schema, "!is there twice"},
		{``, schema, "!nothing was given"},
		{`[1,2]`, `{"type":"array"}`, `[1,2]`},
		{`[1,2]`, ``, `[1,2]`},
		{`[1` + strings.Repeat(" ", MaxAnswer) + `]`, ``, "!more than 65536 bytes"},
		{`{"n":12345678901234567890}`, ``, `{"n":12345678901234567890}`},
		{`{}`, `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"default":{}, "properties":{"y":{"$ref":"#/$defs/b"}}}}},"b":{"default":[1]}}}`, `{"x":{"y":[1]}}`},
		{`{"list":[{},{"a":2}]}`, `{"properties":{"list":{"items":{"properties":{"a":{"default":1}}}}}}`, `{"list":[{"a":1},{"a":2}]}`},
		{`{"k":{}}`, `{"additionalProperties":{"properties":{"a":{"default":1}}}}`, `{"k":{"a":1}}`},
		{`{}`, `{"anyOf":[{"properties":{"a":{"default":1}}}],"allOf":[{"properties":{"b":{"default":2}}}]}`, `{"b":2}`},
		{`{"a":null}`, `{"properties":{"a":{"default":1}}}`, `{"a":null}`},
		{`{}`, `{"properties":{"a":{"$ref":"#","default":{}},"b":{"$ref":"#","default":{}}}}`, "!more than 10000 values"},
		{`{"x":1e-999999999}`, `{"properties":{"x":{"minimum":0}}}`, `{"x":0}`},
		{`{}`, `{"properties":{"a":{"default":"` + strings.Repeat("x", 40<<10) + `"},"b":{"$ref":"#/properties/a"}}}`, "!more than 65536 bytes with its defaults"},
	} {
		var schema *engine.Schema
		if c.schema != "" {
			schema = schemaOf(c.schema)
		}
		got, err := ReadAnswer([]byte(c.in), schema)
		if part, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %s, error %v; want an error with %q", c.in, got, err, part)
			}
		} else if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, error %v; want %s", c.in, got, err, c.want)
		}
	}
}

// What a reviewer did not say is never made up.
func TestJudgementIsNeverADefault(t *testing.T) {
	hold.Rule(t, "field ask 6", "a default is nobody's word")
	schema := schemaOf(`{"allOf":[{"$ref":"#/$defs/d"}],"$defs":{"d":{"properties":{"verdict":{"default":"pass"},"score":{"default":100},"scores":{"default":{"a":100}},"note":{"default":"n"}}}}}`)
	if j, err := ReadVerdict(VerdictInput{Schema: schema, Output: []byte(`{}`)}); err == nil {
		t.Errorf("%+v", j)
	}
	j, err := ReadVerdict(VerdictInput{Schema: schema, Computed: true, Output: []byte(`{}`)})
	if err != nil || j.Outcome != "" || j.Score != nil || j.Scores != nil || string(j.Answer) != `{"note":"n"}` {
		t.Errorf("%+v, %v", j, err)
	}
}

// FuzzReadVerdict: it never panics, a pass is always the value of a key "verdict" in the input, and
// a score is in its range.
func FuzzReadVerdict(f *testing.F) {
	hold.Rule(f, "field ask 6", "a pass is only what stands there as the verdict")
	for _, s := range []string{`{"verdict":"pass"}`, block3(`{"verdict":"fail"}`) + "x", "~~~json\n{\"verdict\":\"p\\u0061ss\"}\n~~~", `{"Verdict":"pass"}`, `{"token":"T","verdict":"pass","scores":{"a":1}}`, `{"x":[{"verdict":"pass"}]}`, "````\n```json\n{}\n```\n"} {
		f.Add([]byte(s), []byte(nil), []byte(nil), byte(0))
		f.Add([]byte(nil), []byte(s), []byte(nil), byte(7))
		f.Add([]byte(nil), []byte(nil), []byte(s), byte(5))
	}
	f.Fuzz(func(t *testing.T, structured, file, output []byte, how byte) {
		in := VerdictInput{Structured: structured, AnswerFile: file, Output: output, Allowed: []string{"pass", "fail"}, Computed: how&2 != 0}
		if how&1 != 0 {
			in.WantToken = "T"
		}
		if how&4 != 0 {
			in.Schema = schemaOf(`{"properties":{"verdict":{"default":"pass"},"score":{"default":100}}}`)
		}
		if how&8 != 0 {
			in.Rubric = []string{"a"}
		}
		j, err := ReadVerdict(in)
		if err != nil && (j.Outcome != "" || j.Score != nil || err.Error() == "") {
			t.Fatalf("%+v beside %v", j, err)
		}
		if j.Score != nil && !(*j.Score >= 0 && *j.Score <= 100) {
			t.Fatalf("score %v", *j.Score)
		}
		if j.Outcome == "pass" {
			said := string(structured) + string(file) + string(output)
			if !strings.Contains(said, `pass`) && !strings.Contains(said, `\u00`) || !strings.Contains(said, "verdict") && !strings.Contains(said, `\u00`) {
				t.Fatalf("a pass that nobody said: %q", said)
			}
			var member struct {
				Verdict string `json:"verdict"`
			}
			if json.Unmarshal(j.Answer, &member) != nil || member.Verdict != "pass" {
				t.Fatalf("a pass that is not in the answer %s", j.Answer)
			}
			if how&1 != 0 && len(structured) == 0 && len(output) == 0 && !strings.Contains(said, "T") && !strings.Contains(said, `\u00`) {
				t.Fatalf("a file without the token passes: %q", said)
			}
		}
		if len(j.Answer) > 0 && !json.Valid(j.Answer) || len(j.Findings) > 0 && !json.Valid(j.Findings) {
			t.Fatalf("no JSON: %+v", j)
		}
	})
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(`{}`), []byte(`{"type":"object","required":["plan"],"properties":{"plan":{"type":"string"},"risk":{"type":"string","default":"low"}}}`))
	f.Add([]byte(`{"a":[1e-999999999]}`), []byte(`{"properties":{"a":{"items":{"multipleOf":0.1}}}}`))
	f.Add([]byte(`[]`), []byte(`{"$ref":"#"}`))
	f.Fuzz(func(t *testing.T, data, schema []byte) {
		got, err := ReadAnswer(data, &engine.Schema{Source: schema})
		if err == nil {
			if again, err := ReadAnswer(got, &engine.Schema{Source: schema}); err != nil || string(again) != string(got) {
				t.Fatalf("%s is read again as %s, %v", got, again, err)
			}
		}
		if _, bad := jsonschema.Compile(schema); bad != nil && err == nil {
			t.Fatal("an answer fits a schema that is none")
		}
	})
}
