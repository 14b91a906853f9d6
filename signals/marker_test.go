package signals

import (
	"strings"
	"testing"

	"sluice/tools/conform"
)

func TestMarker(t *testing.T) {
	conform.Rule(t, "1-language rule 3 git_commit", "a line of its own or the end of the subject; reverts, fixups and quotations fire nothing")
	conform.Rule(t, "13-law 004 marker", "a marker may begin the subject, stand alone in the body, or be a trailer")
	conform.Rule(t, "004 §2 Signal.git_commit", "a commit with a structured message")
	t.Parallel()
	const value = "[GATE:XG-1-2]"
	for _, c := range []struct {
		name, message string
		want          bool
	}{
		{"the subject itself", "[GATE:XG-1-2]", true},
		{"end of the subject", "feat: add the index [GATE:XG-1-2]\n", true},
		{"start of the subject", "[GATE:XG-1-2] write g2", true},
		{"start of the subject, with a tab", "[GATE:XG-1-2]\twrite g2\n\nmore", true},
		{"a trailer", "add\n\nwords\n\nGate: [GATE:XG-1-2]\nSigned-off-by: a <a@example.org>\n", true},
		{"a trailer of another system", "add\r\n\r\nGate: [GATE:XG-1-2]\r\n", true},
		{"own line", "add the index\n\nlong words\n\n[GATE:XG-1-2]\n", true},
		{"own line at once", "add\n[GATE:XG-1-2]", true},
		{"line ends of another system", "add\r\n\r\n[GATE:XG-1-2]\r\n", true},
		{"subject of another system", "add [GATE:XG-1-2]\r\n\r\nmore", true},
		{"space behind", "add\n\n[GATE:XG-1-2] \t\n", true},
		{"tab before", "add\t[GATE:XG-1-2]", true},
		{"blank lines before the subject", "\n\nadd [GATE:XG-1-2]", true},
		{"among trailers", "add\n\nSigned-off-by: a <a@example.org>\n[GATE:XG-1-2]", true},
		{"twice", "add [GATE:XG-1-2]\n\n[GATE:XG-1-2]", true},
		{"a revert that is itself marked", "Revert \"add [GATE:XG-7-8]\" [GATE:XG-1-2]", true},
		{"a line of its own under a revert", "Revert \"add\"\n\nThis reverts commit 1.\n\n[GATE:XG-1-2]", true},

		{"empty", "", false},
		{"another case", "add [gate:xg-1-2]", false},
		{"another gate", "add [GATE:XG-1-20]", false},
		{"revert", "Revert \"add [GATE:XG-1-2]\"\n\nThis reverts commit 1234.", false},
		{"revert of the bare marker", "Revert \"[GATE:XG-1-2]\"\n\nThis reverts commit 1234.", false},
		{"revert of a revert", "Revert \"Revert \"add [GATE:XG-1-2]\"\"", false},
		{"reapply", "Reapply \"add [GATE:XG-1-2]\"", false},
		{"revert on a forge", "Revert \"add [GATE:XG-1-2]\" (#12)", false},
		{"fixup", "fixup! add [GATE:XG-1-2]", false},
		{"squash", "squash! add [GATE:XG-1-2]\n\nmore", false},
		{"amend", "amend! add [GATE:XG-1-2]", false},
		{"in the middle of the subject", "add [GATE:XG-1-2] and more", false},
		{"stuck to the word behind", "[GATE:XG-1-2]add", false},
		{"a revert that begins with it", "Revert \"[GATE:XG-1-2] add\"", false},
		{"a trailer's place in the middle", "add\n\nGate: [GATE:XG-1-2]\n\nmore words", false},
		{"a trailer's form in the subject's paragraph", "add\nGate: [GATE:XG-1-2]", false},
		{"words that end in it", "add\n\nthe marker: [GATE:XG-1-2]", false},
		{"a trailer with more", "add\n\nGate: [GATE:XG-1-2] no", false},
		{"stuck to a word", "add[GATE:XG-1-2]", false},
		{"end of a line of the body", "add\n\nthe marker is [GATE:XG-1-2]", false},
		{"quoted", "add\n\n> [GATE:XG-1-2]", false},
		{"indented, as squash takes over", "Squashed commit of the following:\n\n    add [GATE:XG-1-2]\n    [GATE:XG-1-2]", false},
		{"in a list", "merge\n\n* add [GATE:XG-1-2]\n* [GATE:XG-1-2]", false},
		{"in quotes", "add \"[GATE:XG-1-2]\"", false},
		{"beyond what is looked at", "add\n" + strings.Repeat("x\n", maxMessage) + "[GATE:XG-1-2]", false},
		{"cut to the marker", "add\n" + strings.Repeat("x", maxMessage-len(value)-5) + "\n" + value + "-no", false},
		{"cut in the line", strings.Repeat("x", maxMessage-1) + "\n[GATE:XG-1-2]", false},
	} {
		if got := Marker(c.message, value); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if !Marker(strings.Repeat("x\n", (maxMessage-40)/2)+value+"\n"+strings.Repeat("x", 100), value) {
		t.Error("not found within what is looked at")
	}
}

func TestMarkerValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message, value string
		want           bool
	}{
		{"phase UNDONE", "DONE", false},
		{"phase DONE", "DONE", true},
		{"all ready for review", "ready for review", true},
		{"x", "", false},
		{"x\n\n", " ", false},
		{"a\nb", "a\nb", false},
		{strings.Repeat("x", maxMarker+1), strings.Repeat("x", maxMarker+1), false},
		{`Revert "say "hi""`, `"hi""`, false}, // even one that resembles the quotation's end
	} {
		if got := Marker(c.message, c.value); got != c.want {
			t.Errorf("%q in %q: %v", c.value, c.message, got)
		}
	}
}

func FuzzMarker(f *testing.F) {
	f.Add("add [GATE:X]\n\nbody", "[GATE:X]")
	f.Add("fixup! [GATE:X]", "[GATE:X]")
	f.Add("\r\n", "\"")
	f.Fuzz(func(t *testing.T, message, value string) {
		fired := Marker(message, value)
		if fired && !strings.Contains(message, strings.TrimSpace(value)) {
			t.Fatalf("%q fired in %q", value, message)
		}
		// Git's own revert of that commit, in git's words.
		subject, _, _ := strings.Cut(strings.TrimLeft(message, "\r\n"), "\n")
		subject = strings.TrimRight(subject, "\r")
		if strings.ContainsAny(subject, "\r\n") {
			return
		}
		if revert := "Revert \"" + subject + "\"\n\nThis reverts commit 0123456789.\n"; Marker(revert, value) &&
			strings.TrimSpace(value) != "This reverts commit 0123456789." {
			t.Fatalf("%q fired in %q", value, revert)
		}
	})
}
