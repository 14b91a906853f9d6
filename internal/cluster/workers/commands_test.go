package workers

import "testing"

// An order has an agent's role, or a command and the role whose environment it has: so a worker that
// knows no commands refuses one, and starts no agent in its place.
func TestOrderOfACommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, role string
		argv       []string
		envOf      string
		good       bool
	}{
		{"an agent", "builder", nil, "", true},
		{"a command", "", []string{"true"}, "", true},
		{"a command of a role", "", []string{"true"}, "builder", true},
		{"nothing", "", nil, "", false},
		{"both", "builder", []string{"true"}, "", false},
		{"no role", "", []string{"true"}, "../x", false},
	} {
		s := sentFor(testKey)
		s.Role, s.Argv, s.EnvOf = c.role, c.argv, c.envOf
		if err := checkSent(testKey, s); (err == nil) != c.good {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
