package notify

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"sluice/internal/text"

	"github.com/godbus/dbus/v5"
)

// Names of the desktop notifications specification.
const (
	busName   = "org.freedesktop.Notifications"
	busPath   = "/org/freedesktop/Notifications"
	ownerGone = "org.freedesktop.DBus.NameOwnerChanged"
)

const busSignals = 64 // waiting to be read

// busScreen shows notices through the session bus. It connects at first use, and again when the
// connection broke.
//
// It accepts signals only from the service itself, because any program on the bus can send similar
// ones. That prevents mistakes, not attacks: a malicious program of the same user could own the
// service's name.
type busScreen struct {
	address string
	say     func(report)

	mu     sync.Mutex // held during calls, so that a signal waits until its notice's number is known
	conn   *dbus.Conn
	owner  string // the service's own name on the bus; "" = caps are not known
	caps   []string
	name   string // what it calls itself
	number map[string]uint32
	id     map[uint32]string
	acts   map[string]bool // ids of notices with buttons
}

func newBusScreen(address string, say func(report)) *busScreen {
	return &busScreen{address: address, say: say, number: map[string]uint32{}, id: map[uint32]string{},
		acts: map[string]bool{}}
}

// ready connects and asks for the service's capabilities. The caller holds mu.
func (s *busScreen) ready(ctx context.Context) error {
	if s.conn == nil {
		conn, err := dbus.Connect(s.address) // hangs if the bus hangs: see helper.one
		if err != nil {
			return refused(err)
		}
		signals := make(chan *dbus.Signal, busSignals)
		conn.Signal(signals)
		err = errors.Join(
			conn.AddMatchSignal(dbus.WithMatchSender(busName), dbus.WithMatchInterface(busName),
				dbus.WithMatchObjectPath(busPath)),
			conn.AddMatchSignal(dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"),
				dbus.WithMatchArg(0, busName)))
		if err != nil {
			_ = conn.Close()
			return refused(err)
		}
		s.conn = conn
		go s.listen(conn, signals) // ends with the connection
	}
	if s.owner != "" {
		return nil
	}
	// This call makes the bus start the service if it can.
	call := s.service().CallWithContext(ctx, busName+".GetCapabilities", 0)
	var caps []string
	if err := call.Store(&caps); err != nil {
		var answered dbus.Error
		if !errors.As(err, &answered) || answered.Name != "org.freedesktop.DBus.Error.UnknownMethod" {
			return refused(s.broken(err))
		}
	}
	s.caps = caps
	var name, vendor, version, spec string
	if err := s.service().CallWithContext(ctx, busName+".GetServerInformation", 0).Store(&name, &vendor, &version,
		&spec); err == nil {
		s.name = strings.TrimSpace(text.Clean(name, maxField) + " " + text.Clean(version, maxField))
	} else if ctx.Err() != nil {
		return ctx.Err()
	}
	var owner string
	if err := s.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0,
		busName).Store(&owner); err != nil {
		return refused(s.broken(err))
	}
	s.owner = owner
	return nil
}

func (s *busScreen) service() dbus.BusObject { return s.conn.Object(busName, busPath) }

// broken drops a connection that no longer works. The caller holds mu.
func (s *busScreen) broken(err error) error {
	if s.conn != nil && !s.conn.Connected() {
		_ = s.conn.Close()
		s.conn = nil
		s.forget()
	}
	return err
}

// forget forgets a service that went away. The caller holds mu.
func (s *busScreen) forget() {
	s.owner, s.caps, s.name = "", nil, ""
	clear(s.number)
	clear(s.id)
	clear(s.acts)
}

func (s *busScreen) buttons() bool { return slices.Contains(s.caps, "actions") }

func (s *busScreen) server(ctx context.Context) (report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return report{}, err
	}
	return report{Server: s.name, Buttons: s.buttons()}, nil
}

func (s *busScreen) show(ctx context.Context, r request) (report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return report{}, err
	}
	body, actions, stays := r.Body, []string{}, int32(-1) // as long as the service likes
	hints := map[string]dbus.Variant{"urgency": dbus.MakeVariant(byte(1))}
	if r.Critical {
		hints["urgency"] = dbus.MakeVariant(byte(2))
		stays = 0
	}
	if len(r.Actions) > 0 && s.buttons() {
		for _, a := range r.Actions {
			actions = append(actions, a.Key, a.Label)
		}
		stays = 0 // until we close it
		hints["resident"] = dbus.MakeVariant(true)
		if r.Brief != "" {
			body = r.Brief
		}
	}
	if s.caps != nil && !slices.Contains(s.caps, "body-markup") {
		body = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(body)
	}
	var number uint32
	err := s.service().CallWithContext(ctx, busName+".Notify", 0, appName, s.number[r.ID], "", r.Title, body, actions,
		hints, stays).Store(&number)
	if err != nil {
		return report{}, refused(s.broken(err))
	}
	if r.ID != "" {
		delete(s.id, s.number[r.ID])
		s.number[r.ID], s.id[number], s.acts[r.ID] = number, r.ID, len(actions) > 0
	}
	return report{Server: s.name, Buttons: len(actions) > 0}, nil
}

func (s *busScreen) close(ctx context.Context, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeOff(ctx, id)
}

// drop forgets a notice that is no longer on the screen. The caller holds mu.
func (s *busScreen) drop(id string) {
	delete(s.id, s.number[id])
	delete(s.number, id)
	delete(s.acts, id)
}

// takeOff closes a notice. The caller holds mu.
func (s *busScreen) takeOff(ctx context.Context, id string) {
	number, ok := s.number[id]
	if !ok || s.conn == nil {
		return
	}
	s.drop(id)
	// it may be gone already
	_ = s.service().CallWithContext(ctx, busName+".CloseNotification", 0, number).Err
}

func (s *busScreen) end(ctx context.Context) {
	free := make(chan struct{})
	go func() { // a running call may hold mu; its context has ended
		s.mu.Lock()
		close(free)
	}()
	select {
	case <-free:
	case <-ctx.Done():
		return
	}
	defer s.mu.Unlock()
	for id, acts := range s.acts {
		if acts {
			s.takeOff(ctx, id)
		}
	}
}

// listen takes a connection's signals until it ends.
func (s *busScreen) listen(conn *dbus.Conn, signals <-chan *dbus.Signal) {
	for {
		select {
		case sig := <-signals:
			if sig != nil {
				s.heard(sig)
			}
		case <-conn.Context().Done():
			s.mu.Lock()
			if s.conn == conn {
				s.conn = nil
				s.forget()
			}
			s.mu.Unlock()
			s.say(report{Event: eventLost, Why: "the session bus went away"})
			return
		}
	}
}

func (s *busScreen) heard(sig *dbus.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sig.Name == ownerGone {
		var name, before, after string
		if sig.Sender == "org.freedesktop.DBus" && dbus.Store(sig.Body, &name, &before, &after) == nil &&
			name == busName && before == s.owner && s.owner != "" {
			s.forget()
			s.say(report{Event: eventLost, Why: "the notification service went away"})
		}
		return
	}
	if sig.Sender != s.owner || s.owner == "" {
		return
	}
	var number, reason uint32
	var key string
	switch sig.Name {
	case busName + ".ActionInvoked":
		if dbus.Store(sig.Body, &number, &key) == nil && s.id[number] != "" {
			s.say(report{Event: eventAction, ID: s.id[number], Key: key})
		}
	case busName + ".NotificationClosed":
		if dbus.Store(sig.Body, &number, &reason) != nil || s.id[number] == "" {
			return
		}
		id := s.id[number]
		s.drop(id)
		s.say(report{Event: eventClosed, ID: id, Reason: reason})
	}
}
