package serve

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/settings"
	"sluice/internal/world"
	"sluice/notify"
	"sluice/watcher"
)

// liveSettings are a repo's settings as last read; a failed reload keeps them.
type liveSettings struct {
	parts *Parts
	root  string
	world atomic.Pointer[world.World] // for buttons and late results; nil before there can be any

	mu       sync.Mutex
	last     settings.Settings
	notifier *notify.Notifier
	// One for all notifiers, so that notices on the screen stay; nil: none.
	desktop notify.Channel
	retired []*notify.Notifier // closed to new notices, with some under way
	ends    sync.WaitGroup     // of retired

	files   settings.Files
	rereads sync.Mutex            // held while changed files are read
	watches [2]*watcher.FileWatch // of files.Paths; nil: none
	hinted  atomic.Bool           // one of them may have changed, or its folder was exchanged
	armed   time.Time             // when their events were last asked for; only keepSettings uses it
	deaf    [2]bool               // which of them send no events; likewise
	changed chan struct{}         // to the loop, when a file has changed
}

// read reads the settings' layers again. Notices under way are finished; later ones use the new
// settings.
func (s *liveSettings) read() error {
	at := s.files.Now()
	next, err := s.parts.settings(s.root, at)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.WereRead(at)
	if err != nil {
		return err
	}
	before := s.last.Notify
	s.last = next
	if old := s.notifier; old != nil {
		if reflect.DeepEqual(before, next.Notify) {
			return nil
		}
		s.retired = append(s.retired, old)
		s.ends.Go(func() {
			old.Finish()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.retired = slices.DeleteFunc(s.retired, func(n *notify.Notifier) bool { return n == old })
		})
	}
	s.notifier = notify.New(s.channels(next.Notify))
	return nil
}

// channels returns how people are notified by the settings.
func (s *liveSettings) channels(n settings.Notify) notify.Options {
	o := notify.Options{Command: n.Command, Webhook: n.Webhook.Hook(),
		Log: func(n notify.Notice, what string) {
			s.parts.log.Info().Str("repo", s.root).Str("run", n.Run).Str("gate", n.Gate).Str("kind", n.Kind).Str("title",
				n.Title).Str("body", n.Body).Msg(what)
		},
		Late: func(_ notify.Notice, r notify.Result) {
			if world := s.world.Load(); world != nil {
				world.Reached(r)
			}
		}}
	if n.Escalate.After > 0 {
		o.Reserved = n.Escalate.To
	}
	if n.Desktop {
		if s.desktop == nil {
			s.desktop = s.parts.desk.Channel(func(p notify.Press) {
				if world := s.world.Load(); world != nil {
					world.Pressed(p)
				}
			})
		}
		o.Channels = []notify.Channel{s.desktop}
	} else if s.desktop != nil {
		s.parts.desk.Forget(s.desktop)
		s.desktop = nil
	}
	return o
}

func (s *liveSettings) now() settings.Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// tell returns the notifier.
func (s *liveSettings) tell() *notify.Notifier {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notifier
}

// alarm tells a person about what no run is about. A reload of the settings interrupts it, and it
// is sent again.
func (s *liveSettings) alarm(ctx context.Context, title, text string) {
	n := notify.Notice{Kind: notify.KindInfo, Title: title, Body: text, Urgency: notify.UrgencyCritical}
	for range alarmTries {
		failed := slices.ContainsFunc(s.tell().Send(ctx, n), func(r notify.Result) bool { return !r.OK })
		if !failed || !health.Wait(ctx, alarmPause) {
			return
		}
	}
}

// How often, and after what pause, a failed alarm is sent again.
const (
	alarmTries = 3
	alarmPause = 2 * time.Second
)

func (s *liveSettings) engine() engine.Config { return s.now().Engine() }

// reload reads the settings again, whether or not a file has changed. On an error the old ones stay.
func (s *liveSettings) reload() {
	s.parts.personal.forget()
	_ = s.again() // already reported
}

// Close interrupts notices under way.
func (s *liveSettings) Close() error {
	s.mu.Lock()
	all, desktop := append(slices.Clone(s.retired), s.notifier), s.desktop
	s.mu.Unlock()
	if desktop != nil {
		defer s.parts.desk.Forget(desktop)
	}
	var err error
	for _, n := range all {
		err = errors.Join(err, n.Close())
	}
	if err == nil {
		s.ends.Wait()
	}
	return err
}
