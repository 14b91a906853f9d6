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
	_, c, faults := load("w.yaml", []byte(src), nil, sources{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got := c.notes.sorted()
	if len(got) != 1 || !strings.HasPrefix(got[0].String(), "w.yaml:1:") || !strings.Contains(got[0].Message, "hooks: after_run") {
		t.Errorf("%v", got)
	}
}
