package text

import (
	"strings"
	"testing"

	"sluice/tools/conform"
)

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
			if got := distance(pair[0], pair[1], c.limit); got != c.want {
				t.Errorf("%q, %q below %d: %d, want %d", pair[0], pair[1], c.limit, got, c.want)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	conform.Rule(t, "1-language faults", "the nearest known name")
	for _, c := range []struct {
		known []string
		names map[string]string
	}{
		{[]string{"X-1", "X-2", "review-tests", "review-code", "Build", "Größe"}, map[string]string{
			"x-1":  "X-1", // but for case: nearest, never equal
			"X-11": "X-1", "reveiw-tests": "review-tests", "review-test": "review-tests", "review_cod": "review-code", "biuld": "Build", "X": "",
			"Bxyld":     "", // two wrong of five
			"unrelated": "", "": "", "review": "", "rvw-tsts-of-mine": "", "\xff-1": "", "größe": "Größe"}},
		{[]string{"id", "gate", "next_step", "success_criterion", "X-1"}, map[string]string{"Id": "id", "gaet": "gate", "nextstep": "next_step",
			"succes_criterium": "success_criterion", "x-1": "X-1", "x": "", "frobnicate": "", strings.Repeat("gate", 100): ""}},
		{[]string{"X-1-done.json", "XG-1-2-pass"}, map[string]string{"X-1-doen.json": "X-1-done.json", "zzzz": ""}},
		{[]string{"ac", "AB"}, map[string]string{"ab": "AB"}},
		{[]string{"gata", "gatx"}, map[string]string{"gate": "gata"}}, // of several alike the first
		{[]string{strings.Repeat("x", maxNear+1)}, map[string]string{strings.Repeat("x", maxNear+1): ""}},
		{nil, map[string]string{"name": ""}},
	} {
		for name, want := range c.names {
			if got := Nearest(name, c.known); got != want {
				t.Errorf("%.40q of %.80q: %q, want %q", name, c.known, got, want)
			}
		}
	}
}

func TestMeant(t *testing.T) {
	known := []string{"status", "start", "show", "watch"}
	for name, want := range map[string]string{"statsu": "status", "sho": "show", "wa": "watch", "st": "", "xyz": "", "": ""} {
		if got := Meant(name, known); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
