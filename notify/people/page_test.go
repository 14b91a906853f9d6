package people

import (
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/job"
)

// TestNoticeNamesThePage: a notice leads to its gate, or to its run; without a page it names none.
func TestNoticeNamesThePage(t *testing.T) {
	base := "https://sluice.example.org/r/0123"
	p := New(Options{Root: "/repo", Page: func() string { return base },
		Level:         func(string) (string, string) { return engine.TrustSandbox, "" },
		EscalateAfter: func() int { return 0 }})
	asks := job.Job{Effect: engine.Effect{Notice: &engine.Notice{Kind: engine.NoticeHuman, Run: "w-1", Step: "A", Gate: "G", N: 1}}}
	if got := p.Notice(asks); got.URL != base+"/w-1/g/G" || !strings.Contains(got.Body, "In a browser: "+got.URL) ||
		strings.Contains(got.Brief, base) {
		t.Errorf("a gate's notice: %+v", got)
	}
	ended := job.Job{Effect: engine.Effect{Notice: &engine.Notice{Kind: engine.NoticeInfo, Run: "w-1", Text: "it has ended"}}}
	if got := p.Notice(ended); got.URL != base+"/w-1" || strings.Contains(got.Body, base) {
		t.Errorf("a run's notice: %+v", got)
	}
	base = ""
	if got := p.Notice(asks); got.URL != "" || strings.Contains(got.Body, "browser") {
		t.Errorf("without a page: %+v", got)
	}
}

// TestNoticeCounts: one file is one file.
func TestNoticeCounts(t *testing.T) {
	for want, n := range map[string][2]int{"1 file changed.": {1, 3}, "4 files changed.": {4, 0}, "1 declared output, no other file changed.": {0, 1}, "2 declared outputs, no other file changed.": {0, 2}} {
		p := New(Options{Files: func(string, string, int) (changed, declared int) { return n[0], n[1] }})
		got := p.reviewed(job.Job{Effect: engine.Effect{Notice: &engine.Notice{Run: "w-1", Step: "A"}}, Attempt: &engine.Attempt{N: 1}}, wordsMost)
		if len(got) != 1 || got[0] != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}
