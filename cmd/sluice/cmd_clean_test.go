package main

import (
	"testing"
	"time"
)

func TestSpansOfTime(t *testing.T) {
	for s, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "12h": 12 * time.Hour, "0s": 0} {
		if got, err := days("--older", s); err != nil || got != want {
			t.Errorf("%s: %v %v", s, got, err)
		}
	}
	for _, s := range []string{"", "d", "-1d", "x", "-3h", "99999d"} {
		if _, err := days("--older", s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}
