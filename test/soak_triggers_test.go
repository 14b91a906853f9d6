//go:build linux

package test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/settings"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
	"sluice/tools/conform"
	"sluice/web"
)

// The day of triggers: files, webhooks and the minutes of a schedule fire, each more than once, while the daemon is stopped
// and started and its clock is set back. Its runs have nothing to do: what counts is that each key has one.
const (
	dayFirings  = 160 // of files and webhooks, in the short form
	dayRestarts = 2
	dayFast     = 600   // seconds of the soak's clock in one of the machine's, in the short form
	daySlow     = 240   // and in the long one: a day in six minutes
	dayMinutes  = 20    // that fire, at least
	dayLong     = 8_600 // of the long form; with the 1,440 minutes of a day they are 10,000
	dayBack     = 3 * time.Minute
)

// daySpec is a workflow whose one step is skipped.
const daySpec = `workflow: {id: %s}
on:
  %s
  overlap: parallel
  confirm: false
  max_per_day: 10000
steps:
  - {id: A, when: "1 == 2", run: [true], next_step: DONE}
`

// triggersDay is a day of triggers in one repo.
type triggersDay struct {
	*desk
	host   string // of the page, with its port
	secret []byte

	mu   sync.Mutex
	keys map[string]bool // that must have a run: WORKFLOW KEY
}

func newDay(t *testing.T, scale time.Duration) *triggersDay {
	t.Helper()
	x := newSoak(t, 1, scale)
	d := &triggersDay{desk: x.desks[0], keys: map[string]bool{}}
	for id, on := range map[string]string{"files": `files: ["in/*"]`, "hook": "webhook: {}", "clock": `schedule: [{cron: "* * * * *", catch_up: all}]`} {
		x.put("repo0/.workflow/specs/"+id+".yaml", fmt.Sprintf(daySpec, id, on))
	}
	x.put("repo0/in/.keep", "")
	return d
}

// arm opens the page, and lets the triggers fire.
func (d *triggersDay) arm(ctx context.Context) {
	d.t.Helper()
	p, err := workspace.At(ctx, d.con, d.repo)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.secret, err = workflows.MakeSecret(p, "hook", false); err != nil {
		d.t.Fatal(err)
	}
	page, err := web.New(web.Options{Console: d.con, Home: p.Home, Web: settings.Web{Listen: "127.0.0.1:0", Label: "soak"}, Log: zerolog.Nop()})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { page.Close() })
	at, err := page.Start(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	d.host = strings.TrimPrefix(at, "http://")
	for _, id := range []string{"files", "hook", "clock"} {
		ev, _, err := workflows.Armable(p, id)
		if err == nil {
			err = d.ask(ctx, ev)
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// file makes the n-th file, whole at once.
func (d *triggersDay) file(n int) error {
	name, text := fmt.Sprintf("in/%d", n), fmt.Sprint("file ", n)
	sum := sha256.Sum256([]byte(text))
	d.owe("files " + name + "@" + hex.EncodeToString(sum[:16]))
	hidden := filepath.Join(d.soak.work, "new")
	if err := os.WriteFile(hidden, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(hidden, filepath.Join(d.repo, name))
}

// hook sends the n-th webhook until it is taken in: twice at once, and each time with another delivery's id.
func (d *triggersDay) hook(ctx context.Context, n int) error {
	body := fmt.Appendf(nil, `{"n": %d}`, n)
	sum := sha256.Sum256(body)
	d.owe("hook " + hex.EncodeToString(sum[:16]))
	errs := make(chan error, 2)
	for i := range 2 {
		go func() {
			for again := 0; ; again++ {
				code, err := d.post(ctx, body, fmt.Sprintf("%d-%d-%d", n, i, again))
				if code == http.StatusAccepted || code == http.StatusOK {
					errs <- nil
					return
				}
				if err == nil && code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable {
					err = fmt.Errorf("webhook %d: answer %d", n, code)
				}
				if again > 2000 || code >= 400 && code < 429 || ctx.Err() != nil {
					errs <- cmp.Or(err, ctx.Err(), fmt.Errorf("webhook %d: not taken in, at last by %d", n, code))
					return
				}
				time.Sleep(pollEvery) // the daemon is down, or there were too many in this minute
			}
		}()
	}
	return cmp.Or(<-errs, <-errs)
}

func (d *triggersDay) post(ctx context.Context, body []byte, delivery string) (int, error) {
	_, port, _ := strings.Cut(d.host, ":")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:"+port+"/hook/repo0/hook", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	mac := hmac.New(sha256.New, d.secret)
	mac.Write(body)
	r.Host = d.host
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	r.Header.Set("X-GitHub-Delivery", delivery)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

func (d *triggersDay) owe(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys[key] = true
}

// tally is what the journal says of triggers.
type tally struct {
	runs, skips map[string]int // by workflow and key
	minutes     []time.Time    // that fired, in order
	missed      int            // minutes that passed while nobody was there, beyond what is caught up
}

func (d *triggersDay) tally(ctx context.Context) (tally, error) {
	out := tally{runs: map[string]int{}, skips: map[string]int{}}
	c := daemon.NewClient(d.state)
	defer c.Close()
	err := c.Facts(ctx, "", 0, false, func(l daemon.Line) error {
		fact, err := engine.DecodeFact(l.Fact)
		if err != nil {
			return err
		}
		switch f := fact.(type) {
		case engine.RunStarted:
			if f.Fired != nil {
				out.runs[f.Workflow+" "+f.Fired.Key]++
			}
		case engine.TriggerSkipped:
			n := 0
			if _, err := fmt.Sscanf(f.Why, "%d missed", &n); err == nil {
				out.missed += n
			} else {
				out.skips[f.Workflow+" "+f.Key]++
			}
		case engine.TriggerFired:
			if f.Workflow == "clock" {
				at, err := time.Parse("2006-01-02T15:04Z", f.Firing.Key)
				if err != nil {
					return err
				}
				out.minutes = append(out.minutes, at)
			}
		}
		return nil
	})
	return out, err
}

// owed returns keys that have no run yet.
func (d *triggersDay) owed(of tally) (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.keys {
		if of.runs[key] == 0 {
			out = append(out, key)
		}
	}
	return out
}

// check holds that each key has one run, and each minute.
func (d *triggersDay) check(of tally) {
	t := d.t
	for key, n := range of.runs {
		if flow, _, _ := strings.Cut(key, " "); n != 1 || flow != "clock" && !d.keys[key] {
			t.Errorf("%s: %d runs, expected %t", key, n, d.keys[key])
		}
	}
	for key := range of.skips {
		t.Errorf("%s was skipped", key)
	}
	gaps := 0
	for i := 1; i < len(of.minutes); i++ {
		between := int(of.minutes[i].Sub(of.minutes[i-1])/time.Minute) - 1
		if between < 0 {
			t.Errorf("%s fired after %s", of.minutes[i], of.minutes[i-1])
		}
		gaps += between
	}
	if gaps != of.missed {
		t.Errorf("%d minutes did not fire, and %d are recorded as missed", gaps, of.missed)
	}
}

// play lets everything happen, twice, over restarts.
func (d *triggersDay) play(ctx context.Context, firings, restarts int) {
	t := d.t
	part := firings / (restarts + 1)
	for life := range restarts + 1 {
		stop := d.serve()
		if life == 0 {
			d.arm(ctx)
		}
		var wg sync.WaitGroup
		errs := make(chan error, firings)
		var slots = make(chan struct{}, 8)
		for n := life * part; n < (life+1)*part; n++ {
			if n%2 == 0 {
				if err := d.file(n); err != nil {
					t.Fatal(err)
				}
				if n%6 == 0 { // an earlier one is written again, as it was
					if err := d.file(n / 12 * 2); err != nil {
						t.Fatal(err)
					}
				}
				continue
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if err := d.hook(ctx, n); err != nil {
					errs <- err
				}
				if n%7 == 0 { // and long after
					if err := d.hook(ctx, n/14*2+1); err != nil {
						errs <- err
					}
				}
			})
			if n%(firings/4) == 1 {
				d.clock.set.Add(int64(-dayBack)) // while it serves
			}
		}
		if life < restarts && life%2 == 0 { // with requests under way
			d.clock.set.Add(int64(-dayBack))
			stop()
			stop = d.serve()
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			t.Error(err)
		}
		if life < restarts {
			stop()
			d.clock.set.Add(int64(-dayBack))
		}
	}
}

// TestSoakTriggers: each key has exactly one run, and no minute is lost.
func TestSoakTriggers(t *testing.T) {
	conform.Rule(t, "12-triggers a day", "files, webhooks and minutes, each reported more than once, over restarts and clocks set back")
	firings, restarts, minutes, scale := dayFirings, dayRestarts, dayMinutes, time.Duration(dayFast)
	if soakSize(t) > soakRuns {
		firings, restarts, minutes, scale = dayLong, 20, 1440, daySlow
	}
	d := newDay(t, scale)
	began, ctx := time.Now(), t.Context()
	d.play(ctx, firings, restarts)
	var of tally
	var left []string
	for until := time.Now().Add(waitMost + time.Duration(minutes)*time.Minute/scale); time.Now().Before(until); time.Sleep(10 * pollEvery) {
		var err error
		if of, err = d.tally(ctx); err != nil {
			t.Fatal(err)
		}
		if left = d.owed(of); len(left) == 0 && len(of.minutes) >= minutes {
			break
		}
	}
	if len(left) > 0 || len(of.minutes) < minutes {
		t.Errorf("%d keys have no run, %d minutes have fired: %.300q", len(left), len(of.minutes), left)
	}
	d.check(of)
	t.Logf("%d runs of %d files and webhooks and %d minutes, %d minutes missed, %d restarts, in %s", len(of.runs), len(d.keys), len(of.minutes),
		of.missed, restarts+(restarts+1)/2, time.Since(began).Round(time.Second))
}
