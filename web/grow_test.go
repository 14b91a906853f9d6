package web

import (
	"fmt"
	"hash/maphash"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/conform"
	"sluice/web/transcript"
)

// window is the transcript as a browser shows it.
type window struct {
	lines []string
	begun int // how often it got the whole
	bytes int // of all messages about it
}

const (
	wholeMark = `data: <section id="transcript"`
	moreMark  = `data: <div data-to="transcript" data-drop="`
)

// take applies a message as the page's script does.
func (w *window) take(t *testing.T, message string) {
	t.Helper()
	body, found := strings.CutPrefix(message, moreMark)
	if !found && !strings.HasPrefix(message, wholeMark) {
		return
	}
	w.bytes += len(message)
	if strings.Count(message, "\n") != 2 {
		t.Errorf("not one line: %.200q", message)
	}
	body = body[strings.Index(body, ">")+1:]
	more := strings.SplitAfter(body[:strings.LastIndex(body, "</p>")+4], "</p>")
	more = more[:len(more)-1]
	if !found {
		w.lines, w.begun = more, w.begun+1
		return
	}
	drop := 0
	if _, err := fmt.Sscanf(strings.TrimPrefix(message, moreMark), "%d", &drop); err != nil {
		t.Fatal(err)
	}
	w.lines = append(w.lines[drop:], more...)
}

// until takes messages until the newest line has the text.
func (w *window) until(t *testing.T, l *listener, want string) {
	t.Helper()
	message := ""
	for len(w.lines) == 0 || !strings.Contains(w.lines[len(w.lines)-1], want) {
		line, err := l.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended before %q: %v", want, err)
		}
		if message += line; line == "\n" {
			w.take(t, message)
			message = ""
		}
	}
}

// works starts a run whose first step works, and returns the page of its attempt and its folder.
func (p *site) works() (page, dir string) {
	p.Helper()
	p.world.mu.Lock()
	p.world.busy = true
	p.world.mu.Unlock()
	d, err := p.client.Do(p.Context(), engine.RunRequested{Source: asksSpec, Parallel: true}, "")
	if err != nil || d.Run == "" {
		p.Fatalf("start: %+v %v", d, err)
	}
	r := p.until(d.Run, "its step works", func(r daemon.RunStatus) bool {
		return len(r.Steps[0].Attempts) > 0 && !r.Steps[0].Attempts[0].Launched.IsZero()
	})
	dir = daemon.AttemptDir(p.root, r.Dir, "A", 1, 1)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.Fatal(err)
	}
	return "/r/shop/" + d.Run + "/a/A.1", dir
}

// prints appends to the output of a launch.
func (p *site) prints(dir, s string) {
	p.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "stdout"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		p.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(s); err != nil {
		p.Fatal(err)
	}
}

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %d of what it says, and some more words\n", i)
	}
	return b.String()
}

// TestOnlyNewLinesAreSent: who follows a transcript gets its end once, and then the lines that come; who
// comes late sees the same. Nothing is asked of the daemon meanwhile.
func TestOnlyNewLinesAreSent(t *testing.T) {
	conform.Rule(t, "11-page grows", "the transcript as it grows: …")
	p := newSite(t)
	page, dir := p.works()
	p.prints(dir, numbered(0, 3000))
	n := p.counted()
	const viewers, seconds, each = 5, 4, 3
	var tabs [viewers]*listener
	var all [viewers]window
	for i := range tabs {
		tabs[i] = p.listen(page)
	}
	for i := range tabs {
		all[i].until(t, tabs[i], "line 2999 ")
	}
	whole := all[0].bytes
	asked := n.taken()
	for s := range seconds {
		from := 3000 + s*each
		p.prints(dir, numbered(from, from+each))
		for i := range tabs {
			all[i].until(t, tabs[i], fmt.Sprintf("line %d ", from+each-1))
		}
	}
	if got := n.taken(); got["run"] > 1 { // of the tick, on a slow machine
		t.Errorf("in %d seconds of growth the daemon is asked %v, before %v", seconds, got, asked)
	}
	late := p.listen(page)
	var w window
	w.until(t, late, fmt.Sprintf("line %d ", 3000+seconds*each-1))
	for i, v := range all {
		if v.begun != 1 || !slices.Equal(v.lines, w.lines) {
			t.Errorf("viewer %d got the whole %d times, and sees %d lines; one who comes late %d", i, v.begun, len(v.lines),
				len(w.lines))
		}
		if got, most := v.bytes-whole, seconds*(each*120+120); got > most {
			t.Errorf("for %d lines it gets %d bytes, after %d", seconds*each, got, whole)
		}
	}
	if len(w.lines) != transcript.MaxLines {
		t.Errorf("%d lines are shown", len(w.lines))
	}
	html := p.ask("GET", page, nil).Body.String()
	if !strings.Contains(html, w.lines[0]+w.lines[1]) || !strings.Contains(html, w.lines[len(w.lines)-1]+"</section>") {
		t.Error("without JavaScript the page shows other lines")
	}
}

// TestTranscriptBegins: before its first line, and after its last, the page says so.
func TestTranscriptBegins(t *testing.T) {
	p := newSite(t)
	page, dir := p.works()
	tab := p.listen(page)
	tab.until(t, "It has printed nothing yet.")
	p.prints(dir, "one\ntw")
	var w window
	w.until(t, tab, "one")
	if len(w.lines) != 1 {
		t.Errorf("%q", w.lines)
	}
	p.prints(dir, "o\nthree, without an end")
	w.until(t, tab, "two")
	if err := os.WriteFile(filepath.Join(dir, "exit.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.steer(page, "pause")
	w.until(t, tab, "three")
	if w.begun != 1 {
		t.Errorf("the whole came %d times", w.begun)
	}
}

// steer presses a button of the run that has the page.
func (p *site) steer(page, what string) {
	p.Helper()
	run, _, _ := strings.Cut(page, "/a/")
	if w := p.ask("POST", run+"/"+what, map[string][]string{}); w.Code != http.StatusSeeOther {
		p.Fatal(w.Code, w.Body)
	}
}

// TestGrowth: lines are rendered once, the earliest go where there are too many, and a stream that fell
// behind gets the whole.
func TestGrowth(t *testing.T) {
	p := newSite(t)
	dir := t.TempDir()
	page := &attemptPage{URL: "/a", Works: true, out: transcript.Output{Dir: dir, Name: "stdout"}}
	g := &growth{pages: p.s.pages, seed: maphash.MakeSeed()}
	p.prints(dir, numbered(0, 10))
	var w, slow window
	var sent, slowSent seen
	take := func(w *window, sent *seen) {
		t.Helper()
		var b strings.Builder
		if _, err := g.now.send(&b, sent); err != nil {
			t.Fatal(err)
		}
		if b.Len() > 0 {
			w.take(t, b.String())
		}
	}
	more := func() {
		t.Helper()
		if err := g.more(page); err != nil {
			t.Fatal(err)
		}
	}
	more()
	take(&w, &sent)
	take(&slow, &slowSent)
	first, news := g.now.lines[0], g.now.news
	if more(); g.now.news != news {
		t.Error("nothing has come, and that is news")
	}
	for i := range 60 {
		p.prints(dir, numbered(10+i*100, 110+i*100))
		more()
		take(&w, &sent)
		if i == 10 && &first[0] != &g.now.lines[0][0] {
			t.Error("a line is rendered again")
		}
	}
	if w.begun != 1 || len(w.lines) != transcript.MaxLines || !strings.Contains(w.lines[0], "line 4010 ") {
		t.Errorf("whole %d times, %d lines from %s", w.begun, len(w.lines), w.lines[0])
	}
	if !strings.Contains(string(g.now.around["attemptnav"].message), "before=") {
		t.Error("no way to the lines before")
	}
	take(&slow, &slowSent)
	if slow.begun != 2 || !slices.Equal(slow.lines, w.lines) {
		t.Errorf("who fell behind: whole %d times, %d lines", slow.begun, len(slow.lines))
	}
	wide := strings.Repeat("<", 200<<10) + "\n"
	for range 3 {
		p.prints(dir, wide)
		more()
		take(&w, &sent)
	}
	size := 0
	for _, l := range g.now.lines {
		size += len(l)
	}
	if size != g.size || size > transcript.MaxHTML || len(g.places) != len(g.now.lines) || len(w.lines) != len(g.now.lines) {
		t.Errorf("%d bytes, counted %d; %d lines of %d places, %d shown", size, g.size, len(g.now.lines), len(g.places),
			len(w.lines))
	}
}

// TestNothingToTypeIntoFollows: parts that follow the journal have no field and no fold. So what a person
// writes or opens is never replaced.
func TestNothingToTypeIntoFollows(t *testing.T) {
	conform.Rule(t, "11-page typed", "(idiomorph erases typed words otherwise), …")
	p := newSite(t)
	for _, name := range []string{"waits", "runs", "ended", "runhead", "graph", "runwaits", "steps", "costs", "children", "lines",
		"gatehead", "gatefacts", "verdict", "newround", "attempthead", "attemptnav", "transcript", "said", "unsaid"} {
		part := p.s.pages.t.Lookup(name)
		if part == nil {
			t.Fatalf("no template %s", name)
		}
		for _, tag := range []string{"<form", "<input", "<textarea", "<select", "<details"} {
			if strings.Contains(part.Tree.Root.String(), tag) {
				t.Errorf("%s has %s>", name, tag)
			}
		}
	}
}

// TestScriptIsSmall: the page's own script for live parts has 4 kB at most.
func TestScriptIsSmall(t *testing.T) {
	conform.Rule(t, "11-page script", "at most 4 kB of our own: …")
	b, err := files.ReadFile("static/app.js")
	if err != nil || len(b) > 4000 {
		t.Errorf("app.js has %d bytes: %v", len(b), err)
	}
}
