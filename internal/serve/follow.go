package serve

import (
	"context"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"sluice/internal/alarm"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/settings"
	"sluice/internal/workspace"
	"sluice/watcher"
)

// settingsEvery is how often settings files that send no events are checked, together with the repos' own
// rescans, so that one wake-up serves all. The others are checked every rareEvery. Their events are
// requested again every armEvery, and when the settings have changed.
const (
	settingsEvery = 5 * time.Second
	rareEvery     = time.Minute
	armEvery      = 5 * time.Minute
)

// follow returns the settings of a repo, which change as their files do.
func (w *Parts) follow(root string) (*liveSettings, error) {
	s := &liveSettings{parts: w, root: root, changed: make(chan struct{}, 1)}
	s.files.Paths = w.settingsFiles(root)
	return s, s.read()
}

func (w *Parts) settingsFiles(root string) [2]string {
	own, err := workspace.ConfigFile(w.Console)
	if err != nil {
		own = ""
	}
	return [2]string{own, settings.ProjectFile(root)}
}

func (s *liveSettings) watchFiles() {
	for i, f := range s.files.Paths {
		if f != "" {
			s.watches[i] = s.parts.watch.WatchFile(f)
		}
	}
}

// follows reports whether a hint names one of the files.
func (s *liveSettings) follows(name string) bool {
	return slices.ContainsFunc(s.watches[:], func(f *watcher.FileWatch) bool { return f != nil && f.Key() == name })
}

// look reads the settings again if a file has changed and is complete. It reports whether to look
// again soon. hinted: an event says so; it may be the last of a folder that was exchanged.
func (s *liveSettings) look(pass settings.Pass, now time.Time, hinted bool) (soon bool) {
	if hinted || now.Sub(s.armed).Abs() > armEvery-rareEvery/2 {
		s.armed = now
		for i, f := range s.watches {
			s.deaf[i] = f != nil && !f.Arm()
		}
	}
	return s.reread(pass, now)
}

// fresh reads settings whose change no event reported, before a launch: for example, a folder above them
// was renamed or mounted over. It waits until the files are complete.
func (s *liveSettings) fresh(ctx context.Context) {
	for s.reread(settings.Pass{}, time.Now()) && health.Wait(ctx, settings.Settle) {
	}
}

// reread is look without the events. Any goroutine may call it.
func (s *liveSettings) reread(pass settings.Pass, now time.Time) (soon bool) {
	s.rereads.Lock()
	defer s.rereads.Unlock()
	if changed, soon := s.files.Changed(pass, now); !changed {
		return soon
	}
	s.poke() // their folder may have been exchanged: its events are requested again
	before := s.now().Engine()
	err := s.again()
	if s.parts.faulty(s, err) {
		what, _ := fault.Split(err)
		s.parts.done.Go(func() {
			s.alarm(s.parts.ctx, "the changed settings are not in force",
				filepath.Base(s.root)+": "+strings.TrimSpace(what)+". The previous settings stay in force.")
		})
	}
	if err != nil {
		return false
	}
	s.parts.log.Info().Str("repo", s.root).Msg("the changed settings are in force")
	if reflect.DeepEqual(before, s.now().Engine()) { // the next launch reads the rest
		return false
	}
	select {
	case s.changed <- struct{}{}:
	default: // the loop has still to look
	}
	return false
}

// again reads the settings. On an error the old ones stay.
func (s *liveSettings) again() error {
	err := s.read()
	if err != nil {
		s.parts.log.Error().Err(err).Str("repo",
			s.root).Msg("the settings could not be read again: the previous ones stay in force")
	}
	return err
}

// faulty records whether a repo's settings could be read, and reports whether to tell a person: the
// same fault, mostly of the person's own file, is reported once for all repos.
func (w *Parts) faulty(s *liveSettings, err error) (tell bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.faults, s)
		return false
	}
	tell = !slices.Contains(slices.Collect(maps.Values(w.faults)), err.Error())
	w.faults[s] = err.Error()
	return tell
}

// keepSettings checks the settings of all repos until ctx ends.
func (w *Parts) keepSettings(ctx context.Context) {
	timer, rare := time.NewTimer(settingsEvery), make(chan struct{})
	defer timer.Stop()
	w.done.Go(func() {
		alarm.Every(ctx, rareEvery, func() {
			select {
			case <-ctx.Done():
			case rare <- struct{}{}:
			}
		})
	})
	for {
		every := false
		select {
		case <-ctx.Done():
			return
		case <-w.poked:
		case <-rare:
			every = true
		case <-timer.C:
		}
		w.mu.Lock()
		all := slices.Collect(maps.Keys(w.live))
		w.mu.Unlock()
		now, soon, deaf := time.Now(), false, false
		pass := settings.Pass{}
		for _, s := range all {
			if hinted := s.hinted.Swap(false); hinted || every || s.files.Stirred(pass, s.deaf) {
				soon = s.look(pass, now, hinted) || soon
			}
			deaf = deaf || s.deaf != [2]bool{}
		}
		switch {
		case soon:
			timer.Reset(settings.Settle)
		case deaf:
			timer.Reset(now.Truncate(settingsEvery).Add(settingsEvery).Sub(now))
		default:
			timer.Stop()
		}
	}
}

// hintSettings wakes keepSettings for the repos that follow the file of the hint.
func (w *Parts) hintSettings(name string) {
	for s := range w.live { // mu is held
		if s.follows(name) {
			s.poke()
		}
	}
}

// poke has keepSettings look at the files, and request their events again.
func (s *liveSettings) poke() {
	s.hinted.Store(true)
	select {
	case s.parts.poked <- struct{}{}:
	default:
	}
}

func (s *liveSettings) closeWatches() {
	for _, f := range s.watches {
		if f != nil {
			f.Close()
		}
	}
}
