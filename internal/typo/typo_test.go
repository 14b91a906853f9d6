package typo

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		limit int
		want  int
	}{
		{"", "", 9, 0}, {"", "abc", 9, 3}, {"gate", "gate", 9, 0}, {"gate", "gaet", 9, 1}, {"gate", "gat", 9, 1}, {"gate", "grate", 9, 1},
		{"gate", "date", 9, 1}, {"gate", "tage", 9, 2}, {"größe", "grosse", 9, 3}, {"kitten", "sitting", 9, 3}, {"kitten", "sitting", 2, 2},
		{"a", "aaaaaaaa", 3, 3}, {"abc", "xyz", 9, 3},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := Distance(pair[0], pair[1], c.limit); got != c.want {
				t.Errorf("%q, %q below %d: %d, want %d", pair[0], pair[1], c.limit, got, c.want)
			}
		}
	}
}
