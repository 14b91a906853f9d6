//go:build linux

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sluice/tools/conform"
)

// axe checks a page by axe-core (testdata/axe, vendored: tests need no network).
func (b *tab) axe(where, source string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](source + "; undefined"))
	raw := b.is(`axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map((v) =>
		({id: v.id, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 160) + " " + n.failureSummary)}))))`)
	var faults []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(raw), &faults); err != nil {
		b.t.Fatal(err, raw)
	}
	for _, f := range faults {
		b.t.Errorf("%s: axe: %s: %s\n%s", where, f.ID, f.Help, strings.Join(f.Nodes, "\n"))
	}
}

// askedSpec has a gate that asks for an answer.
const askedSpec = `workflow: {id: ask, name: Ask for an answer}
steps:
  - {id: Q, run: "echo hello >> out.txt", gate: AG}
gates:
  - {id: AG, name: where it goes, reviewer: {level: human}, on_pass: {next_step: DONE},
     answer: {type: object, required: [region, sure], properties: {
       region: {enum: [eu-north, us-east], title: Region, description: where the service runs},
       replicas: {type: integer, minimum: 1, maximum: 9, default: 2}, sure: {type: boolean}, note: {type: string}}}}
`

// TestPageLooks: every page fits a wide screen and a phone, in dark and light; no error and no report
// of the policy; axe finds nothing.
func TestPageLooks(t *testing.T) {
	conform.Rule(t, "11-page looks", "It works on a phone (360 px wide), by keyboard, in dark and …")
	w, sluice, _ := paged(t)
	axe, err := os.ReadFile("testdata/axe/axe-4.14.1.min.js")
	if err != nil {
		t.Fatal(err)
	}
	w.write(".workflow/specs/ask.yaml", askedSpec) // in mid-run it would be a change of the law
	w.start(sluice, "w")
	w.start(sluice, "n")
	w.start(sluice, "ask")
	w.start(sluice, "agents", "--var", "topic=a long topic "+strings.Repeat("without-end", 12)+
		"<script src=//evil.example/x.js></script><img src=//evil.example/p.png onerror=x> \u202e\u200b")
	w.start(sluice, "w", "--parallel")
	for run, asks := range map[string]string{"w-1": "G for a person", "w-2": "G for a person",
		"agents-1": "H for a person", "ask-1": "AG for a person"} {
		w.until(asks, "status", run)
	}
	for _, args := range [][]string{{"pass", "G", "--run", "w-2", "--yes"}, {"fail", "G", "--run", "w-1",
		"-m", "two lines, please"}} {
		if code, out := w.binary(sluice, args...); code != 0 {
			t.Fatal(out)
		}
	}
	w.until("G for a person", "status", "w-1")
	b := w.login()
	b.sees("VG a look")
	b.quiet("the login")
	for _, width := range []int64{1280, 360} {
		for _, scheme := range []string{"light", "dark"} {
			b.view(width, scheme)
			for _, p := range []struct{ name, path, sees string }{
				{"inbox", "/", "What waits for you"}, {"run", "/r/work/w-1", "What happened"},
				{"gate", "/r/work/w-1/g/G", "What you decide on"}, {"sure", "", "Pass G"},
				{"window", "/r/work/n-1/g/VG", "unless somebody vetoes"}, {"agents", "/r/work/agents-1/g/H", "a long topic"},
				{"answer", "/r/work/ask-1/g/AG", "A pass sends this answer"}, {"abort", "", "Abort w-1?"}, {"start", "/start", "Start a run"}, {"form", "/start/work/agents", "what about"},
				{"history", "/history", "w-2"}, {"nowhere", "/r/work/none", "That did not work"},
			} {
				where := fmt.Sprintf("%s-%d-%s", p.name, width, scheme)
				switch p.name {
				case "sure":
					b.looks()
					b.click(`button[value="pass"]`)
				case "abort":
					b.open("/r/work/w-1")
					b.click(`form[action$="/abort"] button`)
				default:
					b.open(p.path)
				}
				b.sees(p.sees)
				if p.name == "run" {
					b.until(`getComputedStyle(document.querySelector("#graph .asking .box")).stroke ==
						getComputedStyle(document.querySelector("#steps .tag.ask")).color`)
					b.until(`innerWidth > 400 || document.querySelector("#runwaits").getBoundingClientRect().top <
						document.querySelector("#graph").getBoundingClientRect().top`)
				}
				if p.name == "nowhere" { // a status that is no 200 is reported
					b.forget()
				}
				if wide := b.is(`document.documentElement.scrollWidth - innerWidth`); wide != "0" {
					t.Errorf("%s: the body scrolls by %s", where, wide)
				}
				b.quiet(where)
				b.shot(where)
				if (width == 360) == (scheme == "dark") { // it takes longer than all else
					b.axe(where, string(axe))
				}
				b.forget()
			}
		}
	}
	out := profile(t)
	out.base = b.base
	out.open("/history")
	out.sees("Not logged in")
	out.forget()
	out.shot("login")
	out.axe("login", string(axe))
}
