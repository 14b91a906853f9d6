package twoclocks

import (
	"testing"
	"time"
)

// TestTime: package time still keeps its two clocks so.
func TestTime(t *testing.T) {
	now := time.Now()
	for _, d := range []time.Duration{time.Minute, -50 * time.Hour} {
		a, b := Time(now, time.Hour), Time(now.Add(d), time.Hour+time.Second)
		if wall, steady := b.Round(0).Sub(a.Round(0)), b.Sub(a); wall != d || steady != time.Second || !a.Round(0).Equal(now.Round(0)) {
			t.Errorf("%s: by the clock on the wall %s, by the steady one %s", d, wall, steady)
		}
	}
}
