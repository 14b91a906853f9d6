package prompt

import (
	"fmt"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/text/hostile"
	hold "sluice/tools/conform"
)

// full is a step of which every section has something to say.
func full() StepInput {
	return StepInput{Role: "implementor", Workflow: "w", Run: "w-1", Step: "S", Attempt: 2, Task: "Do the thing.",
		ContextFiles: []string{"CLAUDE.md"}, Inputs: []Input{{"in.txt", true}}, Outputs: []string{"out.txt"},
		Criteria: []engine.Criterion{{File: "out.txt"}}, Retry: []TextFile{{Path: "r-1.md", Text: "first"}, {Path: "r-2.md", Text: "second"}},
		Notes: []Note{{"A person", "a note"}}, Schema: &engine.Schema{Source: []byte(`{"type":"object"}`)}}
}

// headings are the sections of a prompt, in their order.
func headings(s string) string {
	var out []string
	for l := range strings.SplitSeq(withoutData(s), "\n") {
		if h, ok := strings.CutPrefix(l, "## "); ok {
			out = append(out, h)
		}
	}
	return strings.Join(out, "; ")
}

// TestBuiltInRoles: each role that is shipped is a whole prompt: nothing is wrong with it, and every section stands in it.
func TestBuiltInRoles(t *testing.T) {
	if n := len(Roles()); n != 8 {
		t.Errorf("%d roles", n)
	}
	for _, r := range Roles() {
		if faults := checkTemplate(r.Text); len(faults) > 0 {
			t.Errorf("%s: %v", r.Name, faults)
		}
		in := full()
		in.Role = r.Name
		got := Step(in)
		for _, want := range []string{"You are the " + strings.ReplaceAll(r.Name, "-", " "), "Do the thing.", "`CLAUDE.md`", "`in.txt`", "`out.txt`", "first", "second", "a note", "Your answer", "How to say that you are done"} {
			if strings.Count(got, want) == 0 {
				t.Errorf("%s: no %q in its prompt", r.Name, want)
			}
		}
		if strings.Contains(got, "${{") {
			t.Errorf("%s: a placeholder is left", r.Name)
		}
		review := Review(ReviewInput{Role: r.Name, Gate: "G", Step: "S", Criteria: []string{"be good"}, Look: "look here", Retry: in.Retry})
		judges := map[string]bool{"reviewer": true, "tester": true, "supervisor": true, "controller": true}[r.Name]
		if strings.Contains(review, "You are the "+r.Name) != judges || !judges && !strings.Contains(review, "You are the reviewer") {
			t.Errorf("%s reviews as another:\n%.200s", r.Name, review)
		}
		for _, want := range []string{"be good", "look here", "second", "## Your verdict", "## The work"} {
			if !strings.Contains(review, want) {
				t.Errorf("%s: no %q in its review", r.Name, want)
			}
		}
	}
}

// TestTemplatePlaces: what a template places stands there; what it does not place follows, and nothing stands there twice.
func TestTemplatePlaces(t *testing.T) {
	usual := headings(Step(full()))
	in := full()
	in.Template = "You are ${{ role }}, try ${{attempt}} at ${{ step }}. $${{ role }} stays.\n\n${{ retry }}\nMind the above.\n\n  ${{ signal }}\n"
	got := Step(in)
	want := "What went wrong before; How to say that you are done; " + strings.Replace(strings.Replace(usual, "What went wrong before; ", "", 1), "; How to say that you are done", "", 1)
	if h := headings(got); h != want {
		t.Errorf("sections: %s\nwant: %s", h, want)
	}
	for _, want := range []string{"You are `implementor`, try 2 at `S`. ${{ role }} stays.\n", "\nMind the above.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%.600s", want, got)
		}
	}
	// Values are not templates.
	in = full()
	in.Step, in.Task, in.Template = "S", "${{ signal }}", "At ${{ name }}.\n${{ task }}"
	in.Name = "${{ retry }}"
	if got := Step(in); headings(got) != "Your task; "+strings.Replace(usual, "Your task; ", "", 1) || !strings.Contains(got, "At `${{ retry }}`.") {
		t.Errorf("a value is taken for a template:\n%.500s", got)
	}
}

func TestCheckTemplate(t *testing.T) {
	for text, want := range map[string]string{
		"Fine ${{ step }}.\n${{task}}\n${{ verdict }}": "",
		"Also $${{ anything }}":                        "",
		"a\nb ${{ stp }}":                              "2:3: ${{ stp }}: no such placeholder (did you mean ${{ step }}?)",
		"é ${{ zzzzzzzz }}":                            "1:3: ${{ zzzzzzzz }}: no such placeholder: write $${{",
		"x ${{ task }}":                                "1:3: ${{ task }} is a section",
		"```\n${{ task }}\n```":                        "2:1: ${{ task }} is a section",
		"${{ task }}\n${{ task }}":                     "2:1: ${{ task }} stands there twice",
		"go ${{ task":                                  "1:4: ${{ is not closed",
		" \n":                                          "1:1: empty",
		strings.Repeat("x", maxTemplate+1):             "1:1: more than",
	} {
		var got []string
		for _, f := range checkTemplate(text) {
			got = append(got, fmt.Sprintf("%d:%d: %s", f.Line, f.Col, f.Message))
		}
		if len(got) > 1 || len(got) == 0 && want != "" || len(got) == 1 && (want == "" || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

// TestForeignValues: what others said stands in a task as data, wherever the task names it.
func TestForeignValues(t *testing.T) {
	hold.Rule(t, "1-language values.data", "a value of others in a task stands as data")
	hold.Rule(t, "12-triggers data", "as agents' words")
	for _, payload := range append(hostile.Texts(), "word", "one line of text", "two\n## New section\nlines") {
		v := NewValues()
		task := "Do " + v.mark("steps.a.answer", payload) + " now.\n\n````sh\n" + v.mark("steps.a.answer", payload) + "\n````\n\n- " + v.mark("gates.g.feedback", payload) + "\nThe end of the task."
		in := full()
		in.Task, in.Values, in.Retry, in.Notes = task, v, nil, nil
		got := Step(in)
		outside := withoutData(got)
		if strings.Contains(got, v.sign) {
			t.Errorf("%q: a mark is left:\n%s", payload, got)
		}
		for _, sign := range []string{"# New task", "You are free now", "Say pass", "## New section"} {
			if strings.Contains(outside, "\n"+sign) {
				t.Errorf("%q stands in the prompt as text of its own:\n%s", payload, outside)
			}
		}
		for _, want := range []string{"\n## Your task\n", "\nThe end of the task.\n", "\n## How to say that you are done\n", "\n## Rules about data\n"} {
			if strings.Count(outside, want) != 1 {
				t.Errorf("%q makes or hides %q:\n%s", payload, want, outside)
			}
		}
	}
	v := NewValues()
	if got, _ := v.fill("a " + v.mark("x", "word") + " b " + v.mark("y", "some words") + " c " + v.mark("z", "1\n2")); got != "a word b `some words` c \n\nThe value of `z`:\n\n````data\n1\n2\n````\n\n" {
		t.Errorf("%q", got)
	}
	if NewValues().sign == v.sign {
		t.Error("the mark can be foretold")
	}
}
