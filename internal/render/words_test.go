package render

import (
	"testing"
	"time"

	"sluice/engine"
)

// TestSpentShort: the cost first, tokens by the thousand, and bounds where there are some.
func TestSpentShort(t *testing.T) {
	for _, c := range []struct {
		u, most engine.Spend
		want    string
	}{
		{engine.Spend{}, engine.Spend{}, ""},
		{engine.Spend{Usage: engine.Usage{Tokens: 9999}}, engine.Spend{}, "9999 tokens"},
		{engine.Spend{Usage: engine.Usage{Tokens: 912_345, CostUSD: 0.5}}, engine.Spend{}, "0.50 USD, 912k tokens"},
		{engine.Spend{Usage: engine.Usage{Tokens: 1_250_000}}, engine.Spend{Usage: engine.Usage{Tokens: 2_000_000, CostUSD: 3}}, "0.00 of 3.00 USD, 1.2M of 2.0M tokens"},
		{engine.Spend{Launches: 2, Time: engine.Duration(time.Minute)}, engine.Spend{Launches: 5, Time: engine.Duration(time.Hour)}, "2 of 5 launches, 1m0s of 1h0m0s at work"},
	} {
		if got := SpentInAllShort(c.u, c.most); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestAgo: a span of time in two figures, and never less than nothing.
func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Hour: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 3 * time.Hour: "3h00m", 50 * time.Hour: "2d"} {
		if got := Ago(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
