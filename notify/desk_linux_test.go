package notify

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// service is a notification service that does what a real one does; it can hang, and it can go.
type service struct {
	conn *dbus.Conn

	mu     sync.Mutex
	caps   []string
	last   uint32
	shows  map[uint32]posted
	closed []uint32
	hold   chan struct{} // not nil: Notify waits for it
	asker  string        // the bus's name of who asked last
}

// posted is one notice that stands on the screen.
type posted struct {
	title, body string
	actions     []string
	expire      int32
	resident    bool
	urgency     byte
}

func (s *service) GetCapabilities() ([]string, *dbus.Error) { return s.caps, nil }

func (s *service) GetServerInformation() (name, vendor, version, spec string, _ *dbus.Error) {
	return "stub", "sluice", "1", "1.2", nil
}

func (s *service) Notify(asker dbus.Sender, _ string, replaces uint32, _, title, body string, actions []string, hints map[string]dbus.Variant, expire int32) (uint32, *dbus.Error) {
	s.mu.Lock()
	s.asker = string(asker)
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := replaces
	if _, there := s.shows[id]; !there {
		s.last++
		id = s.last
	}
	resident, _ := hints["resident"].Value().(bool)
	urgency, _ := hints["urgency"].Value().(byte)
	s.shows[id] = posted{title, body, actions, expire, resident, urgency}
	return id, nil
}

func (s *service) CloseNotification(id uint32) *dbus.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.shows, id)
	s.closed = append(s.closed, id)
	return nil
}

// all are the notices on the screen, by number.
func (s *service) all() []posted {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []uint32
	for id := range s.shows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	out := []posted{}
	for _, id := range ids {
		out = append(out, s.shows[id])
	}
	return out
}

func (s *service) titles() string {
	var out []string
	for _, p := range s.all() {
		out = append(out, p.title)
	}
	return strings.Join(out, ", ")
}

// number is that of the notice with the title.
func (s *service) number(title string) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.shows {
		if p.title == title {
			return id
		}
	}
	return 0
}

// emit sends a signal of the specification's from a connection.
func emit(t *testing.T, conn *dbus.Conn, name string, values ...any) {
	t.Helper()
	if err := conn.Emit(busPath, busName+"."+name, values...); err != nil {
		t.Fatal(err)
	}
}

// direct sends a signal to one connection alone: no match rule keeps it out.
func direct(t *testing.T, conn *dbus.Conn, to, name string, values ...any) {
	t.Helper()
	call := conn.Send(&dbus.Message{Type: dbus.TypeSignal, Body: values, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldInterface: dbus.MakeVariant(busName), dbus.FieldMember: dbus.MakeVariant(name), dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath(busPath)),
		dbus.FieldDestination: dbus.MakeVariant(to), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(values...)),
	}}, nil)
	if call != nil && call.Err != nil {
		t.Fatal(call.Err)
	}
}

// startService puts a service on the bus.
func startService(t *testing.T, address string, caps ...string) *service {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &service{conn: conn, caps: caps, shows: map[uint32]posted{}}
	if err := conn.Export(s, busPath, busName); err != nil {
		t.Fatal(err)
	}
	if reply, err := conn.RequestName(busName, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("cannot own the name: %v %v", reply, err)
	}
	return s
}

// deskOn is a desk on a bus, with a channel whose presses are given.
func deskOn(t *testing.T, address string) (*Desk, *Notifier, chan Press) {
	t.Helper()
	d := NewDesk(helperArgv(t), []string{"PATH=" + os.Getenv("PATH"), mark(t), busVariable + "=" + address})
	presses := make(chan Press, 8)
	n := New(Options{Channels: []Channel{d.Channel(func(p Press) { presses <- p })}})
	t.Cleanup(func() {
		_ = n.Close()
		_ = d.Close()
	})
	return d, n, presses
}

// gateNotice is the notice of a gate's round.
func gateNotice(slot, title string) Notice {
	return Notice{Kind: "human", Title: title, Body: "long\nsluice pass G", Brief: "brief <b>", Urgency: UrgencyCritical, Slot: slot,
		Actions: []Action{{"approve", "Approve"}, {"reject", "Reject"}}}
}

func send(t *testing.T, n *Notifier, notice Notice) {
	t.Helper()
	if r := byName(t, n.Send(context.Background(), notice), DesktopChannel); !r.OK {
		t.Fatalf("%s: %+v", notice.Title, r)
	}
}

func await(t *testing.T, presses <-chan Press, slot, key string) {
	t.Helper()
	select {
	case p := <-presses:
		if p.Slot != slot || p.Key != key || time.Since(p.At) > time.Minute {
			t.Errorf("pressed: %+v", p)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nobody heard of the button")
	}
}

func TestButtonsOfANotice(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	s := startService(t, address, "actions", "body", "body-markup")
	d, n, presses := deskOn(t, address)
	send(t, n, gateNotice("r/G#1", "one"))
	send(t, n, gateNotice("r/H#1", "two"))
	want := posted{"one", "brief &lt;b&gt;", []string{"approve", "Approve", "reject", "Reject"}, 0, true, 2}
	if got := s.all(); len(got) != 2 || got[0].title != want.title || got[0].body != want.body || !slices.Equal(got[0].actions, want.actions) || got[0].expire != 0 || !got[0].resident || got[0].urgency != 2 {
		t.Fatalf("shown: %+v", got)
	}
	send(t, n, gateNotice("r/G#1", "one, again")) // a reminder
	if got := s.titles(); got != "one, again, two" {
		t.Errorf("not replaced: %s", got)
	}

	other, err := dbus.Connect(address) // not the service: anybody
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	emit(t, other, "ActionInvoked", s.number("two"), "reject")
	direct(t, other, s.asker, "ActionInvoked", s.number("two"), "reject")
	direct(t, other, s.asker, "NotificationClosed", s.number("two"), uint32(2))
	direct(t, other, s.asker, "ActionInvoked", "two", false)            // not of the kind that the specification has
	emit(t, s.conn, "ActionInvoked", uint32(999), "approve")            // of somebody else's notice
	emit(t, s.conn, "ActionInvoked", s.number("two"), "no such button") // never offered
	emit(t, s.conn, "ActionInvoked", s.number("one, again"), "approve")
	await(t, presses, "r/G#1", "approve")

	n.Dismiss("r/G#1")
	n.Dismiss("nothing")
	waitFor(t, "it is off the screen", func() bool { return s.titles() == "two" })
	emit(t, s.conn, "NotificationClosed", s.number("two"), uint32(2)) // by the person
	waitFor(t, "the desk knows", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.open) == 0 })
	send(t, n, gateNotice("r/H#1", "two, reminded"))
	send(t, n, Notice{Title: "plain"})
	_ = d.Close() // as the end of this process would
	if got := s.titles(); !strings.Contains(got, "plain") || strings.Contains(got, "reminded") {
		t.Errorf("at the end the screen has: %s", got)
	}
	if len(presses) != 0 {
		t.Errorf("heard too: %+v", <-presses)
	}
}

func TestNoticeWithoutButtons(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	s := startService(t, address, "body")
	_, n, _ := deskOn(t, address)
	notice := gateNotice("r/G#1", "one")
	notice.Body = "x < y: sluice pass G"
	send(t, n, notice)
	if got := s.all(); len(got) != 1 || len(got[0].actions) != 0 || got[0].body != notice.Body {
		t.Errorf("shown: %+v", got)
	}
	n.Dismiss("r/G#1")
	waitFor(t, "it is off the screen", func() bool { return s.titles() == "" })
}

// TestServiceThatGoes: what stood on the screen of a notification service that died is shown by the
// next one.
func TestServiceThatGoes(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	s := startService(t, address, "actions")
	_, n, presses := deskOn(t, address)
	send(t, n, gateNotice("r/G#1", "one"))
	send(t, n, gateNotice("r/H#1", "two"))
	_ = s.conn.Close()
	n.Dismiss("r/H#1") // while nobody shows it
	next := startService(t, address, "actions")
	long(t, "it is shown again", func() bool { return next.titles() == "one" })
	emit(t, next.conn, "ActionInvoked", next.number("one"), "approve")
	await(t, presses, "r/G#1", "approve")
}

// TestHelperThatDies: so is what a dead helper leaves behind, by its successor.
func TestHelperThatDies(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	s := startService(t, address, "actions")
	d, n, presses := deskOn(t, address)
	send(t, n, gateNotice("r/G#1", "one"))
	d.mu.Lock()
	first := d.proc
	d.mu.Unlock()
	first.kill(nil)
	long(t, "it is shown again", func() bool { return len(s.all()) == 2 }) // the first cannot be replaced: nobody knows its number
	number := func() uint32 { s.mu.Lock(); defer s.mu.Unlock(); return s.last }
	emit(t, s.conn, "ActionInvoked", number(), "reject")
	await(t, presses, "r/G#1", "reject")
}

// TestServiceThatHangs: a notice that hangs is given up, is shown when the service wakes up, and
// the same helper goes on.
func TestServiceThatHangs(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	s := startService(t, address, "actions")
	d, n, _ := deskOn(t, address)
	send(t, n, gateNotice("r/G#1", "one"))
	d.mu.Lock()
	first := d.proc
	d.mu.Unlock()
	hold := make(chan struct{})
	s.mu.Lock()
	s.hold = hold
	s.mu.Unlock()
	r := byName(t, n.Send(context.Background(), gateNotice("r/H#1", "two")), DesktopChannel)
	if r.OK || !r.Hung || !strings.Contains(r.Why, "did not answer") {
		t.Errorf("a service that hangs: %+v", r)
	}
	s.mu.Lock()
	s.hold = nil
	s.mu.Unlock()
	close(hold)
	long(t, "it is shown after all", func() bool { return strings.Contains(s.titles(), "two") })
	select {
	case <-first.gone:
		t.Error("the helper was replaced though it answered")
	default:
	}
}

// TestHelperThatIsDeaf: one that takes requests and never answers is killed and replaced.
func TestHelperThatIsDeaf(t *testing.T) {
	t.Parallel()
	d := NewDesk([]string{"sh", "-c", "exec cat >/dev/null"}, []string{"PATH=" + os.Getenv("PATH"), mark(t), busVariable + "=unix:path=/none"})
	d.limit = 300 * time.Millisecond
	c := d.Channel(nil)
	for range 2 {
		err := c.Send(context.Background(), Notice{Title: "x"})
		if err == nil || !strings.Contains(err.Error(), "it was killed") {
			t.Errorf("%v", err)
		}
	}
	// Who asked it later than the one for whom it is killed is told the same.
	d.limit = 2 * time.Second
	said := make(chan error)
	for wait := range 2 {
		go func() {
			time.Sleep(time.Duration(wait) * 500 * time.Millisecond)
			_, err := d.ask(context.Background(), request{})
			said <- err
		}()
	}
	for range 2 {
		if err := <-said; err == nil || !strings.Contains(err.Error(), "did not answer") {
			t.Errorf("told: %v", err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Send(context.Background(), Notice{Title: "x"}); err == nil || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("after its end: %v", err)
	}
}

// TestHelperThatTalksNonsense: what is no report ends it.
func TestHelperThatTalksNonsense(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"echo hello; exec sleep 100", "head -c 200000 /dev/zero; exec sleep 100", "echo oh no >&2; exit 3"} {
		d := NewDesk([]string{"sh", "-c", says}, []string{"PATH=" + os.Getenv("PATH"), mark(t), busVariable + "=unix:path=/none"})
		began := time.Now()
		err := d.Channel(nil).Send(context.Background(), Notice{Title: "x"})
		if err == nil || strings.Contains(says, "oh no") && !strings.Contains(err.Error(), "oh no") || time.Since(began) > desktopLimit {
			t.Errorf("%s: %v after %s", says, err, time.Since(began))
		}
		_ = d.Close()
	}
}

// TestLastWordOfAHelper: what it said counts, however soon it ended after it.
func TestLastWordOfAHelper(t *testing.T) {
	t.Parallel()
	says := `read -r _; sleep 0.2; echo '{"event":"failed","seq":1,"why":"its last word"}'; exit 1`
	d := NewDesk([]string{"sh", "-c", says}, []string{"PATH=" + os.Getenv("PATH"), mark(t), busVariable + "=unix:path=/none"})
	sent := make(chan error, 1)
	go func() { sent <- d.Channel(nil).Send(context.Background(), Notice{Title: "x"}) }()
	for asked := false; !asked; time.Sleep(time.Millisecond) {
		d.mu.Lock()
		if asked = d.proc != nil && len(d.proc.waits) > 0; !asked {
			d.mu.Unlock()
		}
	}
	select { // its word cannot be taken in while mu is held
	case <-d.proc.gone:
	case <-time.After(time.Second):
	}
	d.mu.Unlock()
	if err := <-sent; err == nil || !strings.Contains(err.Error(), "its last word") {
		t.Error(err)
	}
	_ = d.Close()
}

// TestStaleNotice: what was decided before its turn came is not shown.
func TestStaleNotice(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	s := startService(t, address, "actions")
	_, n, _ := deskOn(t, address)
	stale := gateNotice("r/G#1", "one")
	stale.Over = func() bool { return true }
	if r := byName(t, n.Send(context.Background(), stale), DesktopChannel); r.OK || !r.Missing {
		t.Errorf("%+v", r)
	}
	if len(s.all()) != 0 {
		t.Error("it was shown")
	}
}

// TestTwoChannelsOfADesk: their slots are their own; what one shows outlives its notifier, until it
// is forgotten.
func TestTwoChannelsOfADesk(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	s := startService(t, address, "actions")
	d, n, presses := deskOn(t, address)
	c := d.Channel(nil)
	m := New(Options{Channels: []Channel{c}})
	send(t, n, gateNotice("r/G#1", "ours"))
	send(t, m, gateNotice("r/G#1", "theirs"))
	if got := s.titles(); got != "ours, theirs" {
		t.Fatalf("shown: %s", got)
	}
	emit(t, s.conn, "ActionInvoked", s.number("theirs"), "approve") // nobody listens
	emit(t, s.conn, "ActionInvoked", s.number("ours"), "approve")
	await(t, presses, "r/G#1", "approve")
	_ = m.Close()
	if got := s.titles(); got != "ours, theirs" {
		t.Errorf("after the end of a notifier: %s", got)
	}
	d.Forget(c)
	waitFor(t, "theirs is off the screen", func() bool { return s.titles() == "ours" })
}

func TestServerAndStart(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	startService(t, address, "actions")
	d, _, _ := deskOn(t, address)
	if name, buttons, err := d.Server(context.Background()); name != "stub 1" || !buttons || err != nil {
		t.Errorf("%q, %v, %v", name, buttons, err)
	}
	dir := t.TempDir()
	if err := d.Start(context.Background(), []string{"sh", "-c", `pwd >"$0/a b.part"; mv "$0/a b.part" "$0/$1"`, dir, "a b"}, "/"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it ran", func() bool { b, _ := os.ReadFile(dir + "/a b"); return string(b) == "/\n" })
	if err := d.Start(context.Background(), []string{"sh", "-c", "echo no display >&2; exit 1"}, dir); err == nil || !strings.Contains(err.Error(), "no display") {
		t.Errorf("%v", err)
	}
	if err := d.Start(context.Background(), []string{"/no/such"}, dir); err == nil {
		t.Error("a program that is not there was started")
	}
}

// long polls with more patience than waitFor: what is lost is shown again after a second or more.
func long(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(40 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}
