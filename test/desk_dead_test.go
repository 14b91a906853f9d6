//go:build linux

package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"sluice/daemon"
	"sluice/engine"
)

// muteService owns the name of the notification service, and never answers.
type muteService struct{ asked chan struct{} }

func (m *muteService) GetCapabilities() ([]string, *dbus.Error) { return []string{"actions"}, nil }

func (m *muteService) Notify(string, uint32, string, string, string, []string, map[string]dbus.Variant, int32) (uint32, *dbus.Error) {
	select {
	case m.asked <- struct{}{}:
	default:
	}
	select {}
}

// mute puts one on a bus of its own.
func mute(t *testing.T) (address string, m *muteService) {
	t.Helper()
	address = sessionBus(t)
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	m = &muteService{asked: make(chan struct{}, 1)}
	if err := conn.Export(m, "/org/freedesktop/Notifications", "org.freedesktop.Notifications"); err != nil {
		t.Fatal(err)
	}
	if reply, err := conn.RequestName("org.freedesktop.Notifications", dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("%v %v", reply, err)
	}
	return address, m
}

const windowSpec = `workflow: {id: window}
steps:
  - {id: A, run: [true], gate: G}
gates:
  - {id: G, reviewer: {level: notify, run: "true"}, veto_window: 100ms, on_pass: {next_step: DONE}}
`

// hangs are the words for a desktop that hangs: the helper's, or those of who waited for a place behind others.
func hangs() []string { return []string{"did not answer", "no longer waited for", "still being sent"} }

// anyOf reports whether one of the words is in a text.
func anyOf(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// deadMost is how much longer a gate may take, in the middle, on a machine that has other things to do too: by far less
// than a notice hangs.
const deadMost = 2 * time.Second

// deadRuns is how many gates are passed at each desktop.
const deadRuns = 12

// TestDeadDesktopDelaysNoGate: a person's answer is taken in while the desktop still hangs, and a gate takes as long as
// without a desktop. A veto window opens when the notice was given up.
func TestDeadDesktopDelaysNoGate(t *testing.T) {
	muteAddress, service := mute(t)
	desktops := []struct {
		name, bus string
		says      []string // one of these, in status and in the notices' results; none: nothing
	}{
		{"off", "", nil},
		{"none", "", nil}, // no bus at all: doctor reports it, as many a server has none
		{"empty", sessionBus(t), []string{"org.freedesktop.Notifications"}},
		{"mute", muteAddress, hangs()},
	}
	took := map[string]time.Duration{}
	for _, c := range desktops {
		settings := quickSettings
		if c.name != "off" {
			settings = strings.Replace(settings, "{desktop: false}", "{desktop: true}", 1)
		}
		x := newSandbox(t, settings)
		if c.bus != "" {
			x.env = append(x.env, "DBUS_SESSION_BUS_ADDRESS="+c.bus)
		}
		x.put("repo/.workflow/specs/asks.yaml", fmt.Sprintf(hungSpec, "asks"))
		x.put("repo/.workflow/specs/window.yaml", windowSpec)
		x.commit()
		x.do(x.bin, "watch", "add")
		x.boot()
		eventually(t, "it serves", func() bool { _, ok := x.status(); return ok })
		client := daemon.NewClient(x.state())
		var all []time.Duration
		for range deadRuns {
			all = append(all, x.gateTime(client, "asks"))
		}
		slices.Sort(all)
		took[c.name] = all[len(all)/2]
		if c.name == "mute" {
			<-service.asked // so it hung in the call, nowhere before
			x.answeredWhileItHangs("asks-1")
		}
		x.do(x.bin, "start", "window", "--wait", "--timeout", "60s")
		x.windowAfterTheNotice("window-1", c.says)
		if c.says != nil {
			eventually(t, "status tells of it", func() bool {
				st, ok := x.status()
				return ok && slices.ContainsFunc(st.Health, func(h string) bool {
					return strings.HasPrefix(h, "notices by desktop: ") && anyOf(h, c.says)
				})
			})
		} else if st, ok := x.status(); !ok || len(st.Health) > 0 {
			t.Errorf("%s: health %q", c.name, st.Health)
		}
		client.Close()
		x.end()
	}
	for _, c := range desktops[1:] {
		t.Logf("from the question to the run's end, in the middle of %d: %v without a desktop, %v where it is %s", deadRuns, took["off"], took[c.name], c.name)
		if late := took[c.name] - took["off"]; late > deadMost {
			t.Errorf("where the desktop is %s a gate is %v later", c.name, late)
		}
	}
}

// order lists the facts of a run, a word each, and the results of its gates' notices.
func (w *sandbox) order(run string) (kinds, results []string) {
	w.t.Helper()
	c := daemon.NewClient(w.state())
	defer c.Close()
	if err := c.Facts(w.t.Context(), run, 0, false, func(l daemon.Line) error {
		var f struct {
			Kind, Gate string
			Results    []string
		}
		if err := json.Unmarshal(l.Fact, &f); err != nil {
			return err
		}
		if f.Kind == "notice_tried" {
			if f.Gate == "" {
				return nil // of the run's end
			}
			results = append(results, f.Results...)
		}
		kinds = append(kinds, f.Kind)
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return kinds, results
}

// answeredWhileItHangs: in the journal the answer comes before the notice's end.
func (w *sandbox) answeredWhileItHangs(run string) {
	w.t.Helper()
	eventually(w.t, "the notice was given up", func() bool { kinds, _ := w.order(run); return slices.Contains(kinds, "notice_tried") })
	kinds, results := w.order(run)
	passed, tried := slices.Index(kinds, "round_passed"), slices.Index(kinds, "notice_tried")
	if passed < 0 || tried < passed || !anyOf(strings.Join(results, " "), hangs()) {
		w.t.Errorf("%s: %v; the notice: %q", run, kinds, results)
	}
}

// windowAfterTheNotice: the veto window opened after the notice was attempted, and that says how it went.
func (w *sandbox) windowAfterTheNotice(run string, says []string) {
	w.t.Helper()
	kinds, results := w.order(run)
	tried, opened := slices.Index(kinds, "notice_tried"), slices.Index(kinds, "window_opened")
	if tried < 0 || opened < tried || says != nil && !anyOf(strings.Join(results, " "), says) {
		w.t.Errorf("%s: %v; the notice: %q", run, kinds, results)
	}
}

// hooks is a webhook's other side.
type hooks struct {
	mu   sync.Mutex
	got  []map[string]any
	fail int // answers that are 503 first
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n map[string]any
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &n) // what is no JSON is found to lack all
	n["signature"], n["id"] = r.Header.Get("X-Sluice-Signature"), r.Header.Get("X-Sluice-Notice")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, n)
	if h.fail--; h.fail >= 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (h *hooks) all() []map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// TestRemindersEscalate: an unanswered gate sends reminders, each time later. The first also goes
// to the webhook, whose failure is in the status until it has worked.
func TestRemindersEscalate(t *testing.T) {
	t.Parallel()
	other := &hooks{fail: 1}
	server := httptest.NewServer(other)
	t.Cleanup(server.Close)
	notify := `notify:
  desktop: false
  command: [sh, "@WORK@/tell.sh"]
  remind: 2s
  escalate: {after: 1, to: webhook}
  webhook: {url: "` + server.URL + `/${HOOK_PATH}", secret_env: HOOK_SECRET}
`
	x := newSandbox(t, strings.Replace(quickSettings, "notify: {desktop: false}\n", notify, 1))
	x.env = append(x.env, "HOOK_PATH=p4th", "HOOK_SECRET=s3cret")
	x.put("tell.sh", `echo "$SLUICE_NOTICE_KIND $SLUICE_NOTICE_REPO $SLUICE_NOTICE_GATE $SLUICE_NOTICE_ESCALATED" >>"`+filepath.Join(x.work, "told")+"\"\n")
	x.put("repo/.workflow/specs/w.yaml", fmt.Sprintf(hungSpec, "w"))
	x.commit()
	x.do(x.bin, "watch", "add")
	x.boot()
	eventually(t, "it serves", func() bool { _, ok := x.status(); return ok })
	x.do(x.bin, "start", "w")
	failing := func() bool {
		st, ok := x.status()
		return ok && slices.ContainsFunc(st.Health, func(h string) bool { return strings.HasPrefix(h, "notices by webhook: 127.0.0.1 answered 503") })
	}
	eventually(t, "status tells of the webhook", failing)
	eventually(t, "it was tried again, and status is content", func() bool { return len(other.all()) > 1 && !failing() })
	if got := other.all(); got[0]["id"] != got[1]["id"] || len(got) > 2 { // the next reminder would have fixed it too
		t.Errorf("status was content after %v", got)
	}
	x.do(x.bin, "pass", "G")
	eventually(t, "the run has ended", func() bool {
		st, ok := x.status()
		return ok && len(st.Runs) == 1 && st.Runs[0].Phase == engine.RunCompleted && st.Notices == 0
	})
	for _, n := range other.all() {
		if n["kind"] != "reminder" || n["escalated"] != true || n["urgency"] != "critical" || n["repo"] != "repo" || !strings.HasPrefix(fmt.Sprint(n["title"]), "Unanswered: G") ||
			!strings.HasPrefix(fmt.Sprint(n["signature"]), "v1=") || !strings.Contains(fmt.Sprint(n["id"]), "remind-") {
			t.Errorf("the webhook was told: %v", n)
		}
	}
	told, _ := os.ReadFile(filepath.Join(x.work, "told"))
	if !strings.HasPrefix(string(told), "human repo G \nreminder repo G 1\n") {
		t.Errorf("the command was told:\n%s", told)
	}
	log, _ := os.ReadFile(x.log.Name())
	journal, _ := os.ReadFile(filepath.Join(x.state(), "journal.jsonl"))
	for _, secret := range []string{"p4th", "s3cret"} {
		if strings.Contains(string(log), secret) || strings.Contains(string(journal), secret) {
			t.Errorf("%s stands in the log or the journal", secret)
		}
	}
}
