package show

import (
	"strings"
	"testing"

	"sluice/internal/console"
)

// TestChangedBlanks: white space that changed is seen, with colours and without.
func TestChangedBlanks(t *testing.T) {
	const patch = "@@ -1 +1 @@\n-    \n a\n+\t\n b\n+\r\n~\n"
	for want, colour := range map[string]bool{
		"[-    -]a{+\t+}b{+␍+}\n":                                       false,
		"\x1b[31;7m    \x1b[0ma\x1b[32;7m→\t\x1b[0mb\x1b[32m␍\x1b[0m\n": true,
	} {
		var out strings.Builder
		con := console.New(nil, strings.NewReader(""), &out, &out)
		con.Colour = colour
		printWords(con, []byte(patch))
		if _, got, _ := strings.Cut(out.String(), "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
