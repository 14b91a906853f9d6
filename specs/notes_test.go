package specs

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestNotes: for each template it is known what its commands run; otherwise the note has the place.
func TestNotes(t *testing.T) {
	files, err := filepath.Glob("templates/*/specs/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		for _, n := range Notes(f) {
			t.Errorf("%s", n)
		}
	}
	src := "workflow: {id: w, vars: {known: {default: make test}, asked: {required: true}}, hooks: {after_run: 'sh -c \"$SLUICE_VAR_ASKED\"'}}\n" +
		"steps:\n  - id: a\n    run: $THIS\n    success_criterion: [{run: 'sh -c \"$SLUICE_VAR_KNOWN\"'}]\n    next_step: DONE\n"
	c, faults := load("w.yaml", []byte(src), sources{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got := c.notes.sorted()
	if len(got) != 1 || !strings.HasPrefix(got[0].Error(), "w.yaml:1:") || !strings.Contains(got[0].Message, "hooks: after_run") {
		t.Errorf("%v", got)
	}
}

// TestCutNotes: a plain text for an agent is noted if YAML takes its end for a comment, as it does at #12.
func TestCutNotes(t *testing.T) {
	src := `workflow: {id: w} #12
steps:
  - id: a #1
    agent:
      type: dev #x
      prompt: fix #12 please
    timeout: 5m #short
    success_criterion:
      - it is like #7, and no worse
      - the "second" is # no issue
      - make test exits 0 #slow
    gate: g #g
  - {id: b, agent: {type: dev, prompt: 'as #13'}, next_step: c} #b
  - id: c
    agent:
      type: dev
      prompt: | #c
        as #14
    needs: [b] #c
    gate: h
gates:
  - id: g
    reviewer:
      level: human #1
      prompt: "see #15" #quoted
    on_pass: {next_step: b}
  - id: h
    reviewer:
      level: human
      prompt: see #16
    on_pass: {next_step: DONE}
`
	c, faults := load("w.yaml", []byte(src), sources{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var got strings.Builder
	for _, n := range c.notes.sorted() {
		got.WriteString(n.Error() + "\n")
	}
	want := `w.yaml:6:15: step a: prompt: YAML takes "#12 please" for a comment: put the text in quotes
w.yaml:9:9: step a: success_criterion: YAML takes "#7, and no worse" for a comment: put the text in quotes
w.yaml:30:15: gate h: reviewer: prompt: YAML takes "#16" for a comment: put the text in quotes
`
	if got.String() != want {
		t.Errorf("%s", got.String())
	}
}
