package pulls_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/forge"
	"sluice/internal/job"
	"sluice/internal/pulls"
	"sluice/tools/conform"
	"sluice/tools/forgestub"
)

const (
	histories = 6
	words     = 2  // rounds of a person, in each
	chaos     = 30 // looks while the forge fails and people do anything
	calm      = 20 // looks after that, within which a history has to end
)

// TestRandomHistories has a forge fail at random while checks, reviews and comments come in, and
// compares each verdict with what the forge has. Time is the test's: a wait passes at once.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge random", "in random histories of faults, no pass comes without the checks and words that the forge has, and a run waits with a reason or ends with one")
	f, err := forgestub.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	h := &history{now: time.Now()}
	f.Now = func() time.Time { return h.now }
	h.rig = rigOver(t, f, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()})
	ends := map[string]int{}
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h.t, h.ends = t, ends
			h.begin(seed)
			h.gates()
			for n := range words {
				h.people(n + 1)
			}
		})
	}
	t.Log(ends)
	for _, end := range []string{"pass", "fail", "inconclusive", "paused", "restart", "word"} {
		if ends[end] == 0 && !t.Failed() {
			t.Errorf("no history has the end %s: %v", end, ends)
		}
	}
}

// history is one run's, and what the forge has of it.
type history struct {
	*rig
	rng  *rand.Rand
	now  time.Time
	ends map[string]int

	run, branch, gate string
	commit            string
	looks             int
	again             bool // the daemon starts anew at the next wait
	act               func(good bool)

	checks   map[string]string // of the commit
	reviews  []said
	writes   map[string]bool
	injected map[int]bool
	told     map[string]said // comments by Via
}

// said is a review or a comment.
type said struct{ who, association, state, commit string }

func (h *history) begin(seed uint64) {
	h.rng = rand.New(rand.NewPCG(seed, 17))
	h.run, h.branch = fmt.Sprintf("x-%d", seed+1), fmt.Sprintf("sluice/x-%d", seed+1)
	h.looks, h.reviews, h.writes, h.injected, h.told = 0, nil, map[string]bool{}, map[int]bool{}, map[string]said{}
	h.permit("bob", true)
	h.permit("carl", false)
	h.start()
}

func (h *history) start() {
	h.open(func(o *pulls.Options) {
		clock := func() time.Time { return h.now }
		o.Now, o.Wait = clock, h.wait
		o.Poll = func() time.Duration { return time.Minute }
		o.Open = func(r forge.Repo) *forge.Hub {
			return forge.Open(r, forge.Options{Now: clock, Time: 100 * time.Millisecond, Run: h.f.GH})
		}
	})
}

// wait is between two looks.
func (h *history) wait(ctx context.Context, d time.Duration) bool {
	h.now = h.now.Add(d)
	h.looks++
	switch {
	case ctx.Err() != nil:
		return false
	case h.gate != "" && h.p.Awaits(h.run, h.gate) == "" && (h.gate == "GB" || len(h.notes.All()) == 0):
		h.t.Error("it waits without a reason")
	case d <= 0 || d > time.Hour:
		h.t.Errorf("it waits %v", d)
	}
	good := h.looks > chaos
	if h.looks > chaos+calm {
		h.t.Errorf("it never ends: %s %v", h.p.Awaits(h.run, h.gate), h.notes.All())
		return false
	}
	if good {
		h.f.Heal()
	} else {
		h.fail()
	}
	h.act(good)
	h.again = !good && h.rng.IntN(12) == 0
	return !h.again
}

// fail has some requests fail from now on, or none.
func (h *history) fail() {
	if h.rng.IntN(4) == 0 {
		h.f.Heal()
	}
	if h.rng.IntN(2) == 0 {
		return
	}
	x := forgestub.Fault{Times: pick(h.rng, 0, 1, 2, 4, 8)}
	x.Path = pick(h.rng, "", "", "GET", "POST", "POST", "POST", "PATCH", "pulls", "check-runs", "/status", "reviews", "/comments", "user", "permission",
		"logs", "requested_reviewers")
	x.Status = pick(h.rng, 401, 401, 403, 403, 404, 404, 429, 429, 500, 502, 503, forgestub.Drops, forgestub.Cuts, forgestub.Cuts, forgestub.Cuts)
	switch {
	case h.rng.IntN(80) == 0: // it takes real time
		x.Status, x.Times = forgestub.Hangs, 1
	case h.gate == "GC" && h.rng.IntN(4) == 0: // it has the comment, and sluice does not know
		x = forgestub.Fault{Path: "POST", Status: forgestub.Cuts, Times: 1}
	case x.Status == 429, x.Status == 403 && h.rng.IntN(2) == 0:
		x.Header = forgestub.M{"Retry-After": pick(h.rng, "0", "1", "30", "90", "7200", "soon")}
	}
	h.injected[x.Status] = true
	h.f.Spoil(x)
}

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// number is the run's pull request; 0 = there is none yet.
func (h *history) number() int {
	n := 0
	for i, p := range h.f.Pulls() {
		head := p["head"].(forgestub.M)
		if head["ref"] == h.branch && head["repo"].(forgestub.M)["full_name"] == "acme/dates" {
			if n > 0 {
				h.t.Fatal("it has two pull requests")
			}
			n = i + 1
		}
	}
	return n
}

func (h *history) permit(who string, writes bool) {
	h.writes[who] = writes
	h.f.Permit(who, map[bool]string{true: "write", false: "read"}[writes])
}

func (h *history) check(name, conclusion string) {
	h.checks[name] = conclusion
	h.f.Check(h.commit, name, conclusion, "its log")
}

func (h *history) review(r said) {
	h.reviews = append(h.reviews, r)
	h.f.Review(h.number(), r.who, r.association, r.state, r.commit, "words", forgestub.Line{File: "a", Line: 1, Body: "here"})
}

// judged is what happens while checks and reviews are awaited.
func (h *history) judged(good bool) {
	switch {
	case good:
		h.check("test", "success")
		h.check("build", "success")
		if h.number() > 0 {
			h.permit("bob", true)
			for _, who := range []string{"bob", "carl"} {
				h.review(said{who, "MEMBER", "APPROVED", h.commit})
			}
		}
		return
	case h.rng.IntN(2) == 0:
		h.check(pick(h.rng, "test", "build"), pick(h.rng, "", "", "success", "success", "success", "success", "success", "success", "success", "failure"))
	case h.rng.IntN(4) == 0:
		h.permit(pick(h.rng, "bob", "carl"), h.rng.IntN(2) == 0)
	case h.rng.IntN(30) == 0:
		h.f.Fork("mallory", h.branch)
	case h.number() > 0:
		r := said{pick(h.rng, "bob", "carl", "carl", "mallory", forgestub.Me), "MEMBER", "APPROVED", h.commit}
		switch h.rng.IntN(8) {
		case 0, 1:
			r.state = pick(h.rng, "COMMENTED", "CHANGES_REQUESTED", "DISMISSED")
		case 2, 3:
			r.commit = strings.Repeat("ab", 20)
			r.state = pick(h.rng, "APPROVED", "CHANGES_REQUESTED")
		}
		if r.who == "mallory" {
			r.association = "NONE"
		}
		h.review(r)
	}
}

// truth is what the forge has of the commit: whether it may pass, and whether it may be sent back.
func (h *history) truth() (pass, fail bool) {
	newest := map[string]said{}
	for _, r := range h.reviews {
		if r.association == "MEMBER" && r.who != forgestub.Me && r.state != "COMMENTED" {
			newest[r.who] = r
		}
	}
	approved, wanted := false, false
	for who, r := range newest {
		approved = approved || r.state == "APPROVED" && r.commit == h.commit && h.writes[who]
		wanted = wanted || r.state == "CHANGES_REQUESTED"
		fail = fail || r.state == "CHANGES_REQUESTED" && r.commit == h.commit
	}
	green := len(h.checks) > 0
	for c := range maps.Values(h.checks) {
		green, fail = green && c == "success", fail || c == "failure"
	}
	return green && approved && !wanted, fail
}

// gates has the forge judge one commit after another until one passes.
func (h *history) gates() {
	h.gate, h.act, h.commit = "GB", h.judged, "main"
	for n := 1; !h.t.Failed(); n++ {
		h.commit, h.checks = h.git("commit-tree", "-p", h.commit, "-m", fmt.Sprint(h.run, n), "main^{tree}"), map[string]string{}
		if h.judge(n) {
			return
		}
	}
}

// judge has one commit judged, and reports whether it passed.
func (h *history) judge(n int) bool {
	for !h.t.Failed() {
		ev := h.p.Judge(h.t.Context(), h.job("GB", n))
		pass, fail := h.truth()
		switch {
		case ev == nil && h.again:
			h.ends["restart"]++
			if h.rng.IntN(2) == 0 { // killed before it was noted
				_ = os.Remove(filepath.Join(h.state, "attempts", h.run, "pull.json")) // perhaps there is none
			}
			h.start()
		case ev == nil:
			h.t.Error("it ended without a verdict")
		case ev.Verdict == nil: // a person logs in, and resumes
			h.ends["paused"]++
			if why := ev.Exit.Why; ev.Exit.Class != engine.ClassFatal || !strings.Contains(why, "gh auth login") || !h.injected[401] {
				h.t.Errorf("it is paused: %+v", ev.Exit)
			}
			h.f.Heal()
		case ev.Verdict.Inconclusive != "": // a person has it judged again
			h.ends["inconclusive"]++
			if why := ev.Verdict.Inconclusive; !regexp.MustCompile(`HTTP 40[34]`).MatchString(why) || !h.injected[403] && !h.injected[404] {
				h.t.Errorf("inconclusive: %s", why)
			}
			h.f.Heal()
		case ev.Verdict.Outcome == engine.OutcomePass:
			if h.ends["pass"]++; !pass {
				h.t.Errorf("%s passed with %v and %+v", h.commit, h.checks, h.reviews)
			}
			return true
		default:
			if h.ends["fail"]++; !fail {
				h.t.Errorf("%s was sent back with %v and %+v: %s", h.commit, h.checks, h.reviews, ev.Verdict.Feedback)
			}
			return false
		}
	}
	return false
}

func (h *history) job(gate string, n int) job.Job {
	j := h.rig.job(gate, h.commit, n)
	j.Run, j.Key, j.RunInfo.ID, j.Made.Run, j.Made.Branch = h.run, h.run+"/"+gate, h.run, h.run, h.branch
	for i := range j.Made.Rounds {
		j.Made.Rounds[i].Opened = h.now.Add(-time.Second)
	}
	return j
}

// talk is what people say while one is asked.
func (h *history) talk(good bool) {
	c := said{who: pick(h.rng, "ann", "ann", "mallory", forgestub.Me, "bob"), state: pick(h.rng, "pass", "replan", "ship", "fail"),
		commit: pick(h.rng, h.commit[:12], h.commit[:11], h.commit[:11], strings.Repeat("ab", 20), "")}
	switch {
	case h.number() == 0:
		return
	case good:
		c = said{who: "ann", state: "pass", commit: h.commit}
	case h.rng.IntN(2) == 0:
		return
	}
	id := h.f.Comment(h.number(), c.who, fmt.Sprintf("/sluice %s %s words", c.state, c.commit))
	if !good && h.rng.IntN(4) == 0 {
		h.f.Edit(id, fmt.Sprintf("/sluice pass %s", h.commit), pick(h.rng, 0, time.Minute))
		c.who = "an editor"
	}
	h.told[fmt.Sprintf("comment %d", id)] = c
}

// counts reports whether an answer is what an approver has said of the commit.
func (h *history) counts(ev engine.Answered) bool {
	c, ok := h.told[ev.By.Via]
	right := len(c.commit) >= 12 && strings.HasPrefix(h.commit, c.commit) || c.commit == "" && c.state == "fail"
	return ok && c.who == "ann" && ev.By.Who == "ann" && right && ev.Outcome == c.state && c.state != "ship" && ev.Gate == "GC" &&
		ev.Run == h.run && ev.By.Trust == engine.TrustForge
}

// people asks a person about the commit until one answers, and looks at what was said to whom.
func (h *history) people(n int) {
	h.gate, h.act, h.looks = "GC", h.talk, 0
	j := h.job("GC", n)
	var answered *engine.Answered
	for answered == nil && !h.t.Failed() {
		ctx, cancel := context.WithCancel(h.t.Context())
		h.decides = func(got engine.Answered) (string, error) {
			if !h.counts(got) || got.Round != n {
				h.t.Errorf("%+v, and what was said is %+v", got, h.told)
			}
			answered = &got
			cancel() // the run has moved on
			return "", nil
		}
		h.p.Watch(ctx, j, func(ev engine.Event) { h.t.Errorf("nobody has ended it, and then %+v", ev) })
		cancel()
		h.start()
	}
	if h.t.Failed() {
		return
	}
	h.ends["word"]++
	j.Made.Rounds[0].State, j.Made.Rounds[0].By = engine.Passed, &answered.By
	h.gate, h.looks = "", chaos
	ctx, cancel := context.WithCancel(h.t.Context())
	h.act = func(bool) {
		if h.looks > chaos+3 {
			cancel()
		}
	}
	h.decides = func(ev engine.Answered) (string, error) {
		h.t.Errorf("it was decided, and then %+v", ev)
		return "", nil
	}
	h.p.Watch(ctx, j, func(ev engine.Event) { h.t.Errorf("nobody has ended it, and then %+v", ev) })
	for _, c := range h.f.Comments(h.number()) {
		if strings.Contains(c, fmt.Sprintf("<!-- sluice:reply %s -->", strings.TrimPrefix(answered.By.Via, "comment "))) && strings.Contains(c, "Not counted") {
			h.t.Errorf("%s counted, and is told: %s", answered.By.Via, c)
		}
	}
	marks := regexp.MustCompile(`<!-- sluice:reply \d+ -->`).FindAllString(strings.Join(h.f.Comments(h.number()), "\n"), -1)
	if slices.Sort(marks); len(slices.Compact(slices.Clone(marks))) != len(marks) {
		h.t.Errorf("somebody was told twice: %v", marks)
	}
}
