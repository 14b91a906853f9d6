package show

import (
	"strings"
	"testing"

	"sluice/internal/console"
)

// TestMarkedWords: a change is shown as its lines, with what changed in them marked: words, white space, a line
// end, and a line break in the place of a blank. The head of a file, and what looks like one in a hunk, are not.
func TestMarkedWords(t *testing.T) {
	const patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,7 +1,8 @@\n-    a\n+\ta\n b\n-c d e\n+c d\r\n f\n" +
		"-one two three four\n+one two three\n+four\n g\n-x y z\n+x v z\n\\ No newline at end of file\n"
	for colour, want := range map[bool]string{
		false: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,7 +1,8 @@\n-[-    -]a\n+{+\t+}a\n b\n-c d[- e-]\n+c d{+␍+}\n f\n" +
			"-one two three[- four-]\n+one two three\n+four\n g\n-x [-y-] z\n+x {+v+} z\n\\ No newline at end of file\n",
		true: "\x1b[1mdiff --git a/x b/x\x1b[0m\n--- a/x\n+++ b/x\n\x1b[1m@@ -1,7 +1,8 @@\x1b[0m\n" +
			"\x1b[31m-\x1b[0m\x1b[31;7m    \x1b[0m\x1b[31ma\x1b[0m\n\x1b[32m+\x1b[0m\x1b[32;7m→\t\x1b[0m\x1b[32ma\x1b[0m\n b\n",
	} {
		var out strings.Builder
		con := console.New(nil, strings.NewReader(""), &out, &out)
		con.Colour = colour
		if PrintPatch(con, []byte(patch), true); !strings.HasPrefix(out.String(), want) {
			t.Errorf("%q\nwant %q", out.String(), want)
		}
		out.Reset()
		con.Colour = false
		if PrintPatch(con, []byte(patch), false); out.String() != strings.ReplaceAll(patch, "\r", "␍") {
			t.Errorf("without words: %q", out.String())
		}
	}
}
