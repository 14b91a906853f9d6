package cron

import (
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// TestNext walks cron lines over ordinary days and over the two days on which Berlin's clock moves.
func TestNext(t *testing.T) {
	conform.Rule(t, "12-triggers cron", "over the days on which the clock moves")
	for _, c := range []struct{ line, zone, from, want string }{
		{"0 3 * * 1-5", "Europe/Berlin", "2026-01-02T12:00:00Z", "2026-01-05T02:00 2026-01-06T02:00"},
		{"*/30 * * * *", "", "2026-01-02T12:00:00Z", "2026-01-02T12:30 2026-01-02T13:00"},
		{"0 0 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T00:00 2032-02-29T00:00"},
		{"@daily", "Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T18:30 2026-01-02T18:30"},
		// 02:30 is left out on 29 March: it comes right after the gap
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z", "2026-03-29T01:00 2026-03-30T00:30"},
		// and shown twice on 25 October: it comes the first time
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T02:00:00Z", "2026-10-25T00:30 2026-10-26T01:30"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-26T01:30"},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:15:00Z", "2026-10-25T00:30 2026-10-25T02:00"},
	} {
		zone, err := Zone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		line, err := Parse(c.line, zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}
		for want := range strings.FieldsSeq(c.want) {
			if at = line.Next(at); at.Format("2006-01-02T15:04") != want {
				t.Errorf("%s in %s from %s: %s, want %s", c.line, c.zone, c.from, at, want)
			}
		}
	}
}

// TestRefused: lines that mean nothing, or never come, and zones that do not exist.
func TestRefused(t *testing.T) {
	conform.Rule(t, "12-triggers cron", "lines that never come, and zones that do not exist")
	for line, want := range map[string]string{
		"0 0 30 2 *": "never comes", "": "write minute", "* * *": "want 5 fields", "61 * * * *": "above maximum",
		"@every 5m": "minutes of the clock", "TZ=UTC * * * * *": "timezone", "@nightly": "unknown word",
		"0 0 0 * * *": "want 5 fields", strings.Repeat("1,", 200): "more than 200 bytes", "x * * * *": "write minute",
	} {
		if _, err := Parse(line, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	for _, name := range []string{"Europe/Berln", "Local", "../UTC", "CEST7"} {
		if _, err := Zone(name); err == nil {
			t.Errorf("zone %q is taken", name)
		}
	}
}
