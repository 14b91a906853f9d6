package text

import "testing"

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s, mark string
		most    int
		want    string
	}{
		{"short", "…", 5, "short"}, {"longer", "…", 5, "lo…"}, {"größer", "…", 7, "größ…"[:4] + "…"}, {"ääää", "", 3, "ä"}, {"longer", "\n[cut]", 3, "lon"},
		{"bad\xffbytes", "…", 20, "badbytes"}, {"", "…", 0, ""}, {"€€", "…", 5, "…"},
	} {
		if got := Cut(c.s, c.most, c.mark); got != c.want {
			t.Errorf("Cut(%q, %d, %q) = %q, want %q", c.s, c.most, c.mark, got, c.want)
		}
	}
	if got := Clip("0123456789", 6); got != "012…" {
		t.Errorf("Clip: %q", got)
	}
}
