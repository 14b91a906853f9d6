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

// settingsEvery is how often settings are looked at without an event: at the moments of the repos' own rescans, so that one
// waking serves all.
const settingsEvery = 5 * time.Second

// settingsFiles are the person's file and that of the project.
func (w *Parts) settingsFiles(root string) [2]string {
	own, err := workspace.ConfigFile(w.Console)
	if err != nil {
		own = ""
	}
	return [2]string{own, settings.ProjectFile(root)}
}

// watchFiles has the files followed until Close.
func (s *liveSettings) watchFiles() {
	for _, f := range s.files.Paths {
		if f != "" {
			s.watches = append(s.watches, s.parts.watch.WatchFile(f))
		}
	}
}

// follows reports whether a hint is of one of the files.
func (s *liveSettings) follows(name string) bool {
	for _, f := range s.watches {
		if f.Key() == name {
			return true
		}
	}
	return false
}

// look reads the settings again where a file has changed and is whole by now. It says whether it has to look again soon.
func (s *liveSettings) look(now time.Time) (soon bool) {
	for _, f := range s.watches {
		f.Arm()
	}
	if changed, soon := s.files.Changed(now); !changed {
		return soon
	}
	before := s.now().Engine()
	cfg, err := s.again()
	if s.parts.faulty(s, err) {
		what, _ := fault.Split(err)
		s.parts.done.Go(func() {
			s.alarm(s.parts.ctx, "the changed settings are not in force", filepath.Base(s.root)+": "+strings.TrimSpace(what)+". The previous settings stay in force.")
		})
	}
	if err != nil {
		return false
	}
	s.parts.log.Info().Str("repo", s.root).Msg("the changed settings are in force")
	if reflect.DeepEqual(before, cfg) { // what is launched next asks for the rest
		return false
	}
	select { // what the loop has not taken yet is older
	case <-s.changed:
	default:
	}
	s.changed <- cfg
	return false
}

// again reads the settings and gives what the engine goes by. What cannot be read changes nothing.
func (s *liveSettings) again() (engine.Config, error) {
	err := s.read()
	if err != nil {
		s.parts.log.Error().Err(err).Str("repo", s.root).Msg("the settings could not be read again: the previous ones stay in force")
	}
	return s.now().Engine(), err
}

// faulty notes whether a repo's settings could be read, and says whether a person is to be told: the same fault, of the person's
// own file above all, is told once for all repos.
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

// keepSettings looks at the settings of all repos until ctx ends.
func (w *Parts) keepSettings(ctx context.Context) {
	timer := time.NewTimer(settingsEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.poked:
		case <-timer.C:
		}
		w.mu.Lock()
		all := make([]*liveSettings, 0, len(w.live))
		for s := range w.live {
			all = append(all, s)
		}
		w.mu.Unlock()
		now := time.Now()
		wait := now.Truncate(settingsEvery).Add(settingsEvery).Sub(now)
		for _, s := range all {
			if s.look(now) {
				wait = settings.Settle
			}
		}
		timer.Reset(wait)
	}
}

// hintSettings has the settings looked at, where the hint is of a file of theirs.
func (w *Parts) hintSettings(name string) {
	for s := range w.live { // mu is held
		if s.follows(name) {
			select {
			case w.poked <- struct{}{}:
			default:
			}
			return
		}
	}
}

// closeWatches ends the watch of the files.
func closeWatches(all []*watcher.FileWatch) {
	for _, f := range all {
		f.Close()
	}
}
