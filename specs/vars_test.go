package specs

import (
	"strings"
	"testing"

	"sluice/engine"
)

// A value that a var cannot have is refused before anything starts.
func TestVarsOfChoice(t *testing.T) {
	t.Parallel()
	spec := &engine.Spec{ID: "w", Vars: []engine.Var{{Name: "goal", Required: true}, {Name: "how", Default: "fast", OneOf: []any{"fast", "full"}},
		{Name: "n", Required: true, OneOf: []any{1.0, 2.0}}}}
	for _, c := range []struct {
		given map[string]string
		want  string
	}{
		{map[string]string{"goal": "x", "how": "full", "n": "2"}, ""},
		{map[string]string{"goal": "x", "how": "ful", "n": "2"}, `var how: "ful" is none of fast, full: did you mean "full"?`},
		{map[string]string{"goal": "x", "n": "3"}, `var n: "3" is none of 1, 2`},
		{map[string]string{"goal": " ", "n": "1"}, "var goal: it is empty, and w needs it"},
	} {
		values, errs := Vars(spec, c.given)
		got := ""
		for _, err := range errs {
			got += err.Error()
		}
		if got != c.want && !(c.want != "" && strings.HasPrefix(got, c.want)) || c.want == "" && (values["how"] != "full" || values["n"] != 2.0) {
			t.Errorf("%v: %q, want %q (%v)", c.given, got, c.want, values)
		}
	}
}
