package serve

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/settings"
	"sluice/internal/workspace"
	"sluice/watcher"
)

// settingsEvery is how often settings are checked that send no events, at the moments of the repos' own
// rescans, so that one wakeup serves all. The others are checked, and their events asked for again, each
// armEvery.
const (
	settingsEvery = 5 * time.Second
	armEvery      = time.Minute
)

func (w *Parts) settingsFiles(root string) [2]string {
	own, err := workspace.ConfigFile(w.Console)
	if err != nil {
		own = ""
	}
	return [2]string{own, settings.ProjectFile(root)}
}

func (s *liveSettings) watchFiles() {
	for _, f := range s.files.Paths {
		if f != "" {
			s.watches = append(s.watches, s.parts.watch.WatchFile(f))
		}
	}
}

// follows reports whether a hint names one of the files.
func (s *liveSettings) follows(name string) bool {
	for _, f := range s.watches {
		if f.Key() == name {
			return true
		}
	}
	return false
}

// look reads the settings again if a file has changed and is complete. It reports whether to look
// again soon. hinted: an event says so; it may be the last of a folder that was exchanged.
func (s *liveSettings) look(pass settings.Pass, now time.Time, hinted bool) (soon bool) {
	if hinted || now.Sub(s.armed).Abs() >= armEvery {
		s.armed, s.deaf = now, false
		for _, f := range s.watches {
			s.deaf = !f.Arm() || s.deaf
		}
	}
	if changed, soon := s.files.Changed(pass, now); !changed {
		return soon
	}
	before := s.now().Engine()
	cfg, err := s.again()
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
	if reflect.DeepEqual(before, cfg) { // the next launch reads the rest
		return false
	}
	select { // an unread one is older
	case <-s.changed:
	default:
	}
	s.changed <- cfg
	return false
}

// again reads the settings and returns those of the engine. On an error the old ones stay.
func (s *liveSettings) again() (engine.Config, error) {
	err := s.read()
	if err != nil {
		s.parts.log.Error().Err(err).Str("repo",
			s.root).Msg("the settings could not be read again: the previous ones stay in force")
	}
	return s.now().Engine(), err
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
	tell = true
	for _, text := range w.faults {
		tell = tell && text != err.Error()
	}
	w.faults[s] = err.Error()
	return tell
}

// keepSettings checks the settings of all repos until ctx ends.
func (w *Parts) keepSettings(ctx context.Context) {
	timer := time.NewTimer(settingsEvery)
	defer timer.Stop()
	for {
		hinted := false
		select {
		case <-ctx.Done():
			return
		case <-w.poked:
			hinted = true
		case <-timer.C:
		}
		w.mu.Lock()
		all := make([]*liveSettings, 0, len(w.live))
		for s := range w.live {
			all = append(all, s)
		}
		w.mu.Unlock()
		now, every, soon := time.Now(), armEvery, false
		pass := settings.Pass{}
		for _, s := range all {
			soon = s.look(pass, now, hinted) || soon
			if s.deaf {
				every = settingsEvery
			}
		}
		wait := now.Truncate(every).Add(every).Sub(now)
		if soon {
			wait = settings.Settle
		}
		timer.Reset(wait)
	}
}

// hintSettings wakes keepSettings if the hint names a settings file.
func (w *Parts) hintSettings(name string) {
	for s := range w.live { // mu is held
		if s.follows(name) {
			w.pokeSettings()
			return
		}
	}
}

func (w *Parts) pokeSettings() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

func closeWatches(all []*watcher.FileWatch) {
	for _, f := range all {
		f.Close()
	}
}
