package cron

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // 450 kB: a container has no zones, and its triggers must not differ for that

	"github.com/robfig/cron/v3"
)

// maxLine is the longest cron line, in bytes.
const maxLine = 200

// Line is a cron line of a zone.
type Line struct {
	wall cron.Schedule // on the wall clock, as if that were UTC
	zone *time.Location
}

// Zone returns the time zone with the name; "" is UTC. "Local" is none: it differs by machine.
func Zone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("it differs by machine: name a zone such as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("no time zone has this name: write one such as Europe/Berlin or UTC")
	}
	return zone, nil
}

// Parse reads a cron line of a zone. A line that never comes is an error.
func Parse(line string, zone *time.Location) (Line, error) {
	switch {
	case len(line) > maxLine:
		return Line{}, fmt.Errorf("it has more than %d bytes", maxLine)
	case strings.Contains(line, "="):
		return Line{}, fmt.Errorf("the zone goes into timezone")
	case strings.HasPrefix(line, "@every"):
		return Line{}, fmt.Errorf("@every depends on when sluice began to count: write minutes of the clock, as */15 * * * *")
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	wall, err := parser.Parse(line)
	if err != nil {
		return Line{}, fmt.Errorf("%s: write minute, hour, day of month, month and day of week, as 0 3 * * 1-5",
			plain(err.Error()))
	}
	if wall.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Line{}, fmt.Errorf("it never comes: no year has that day")
	}
	return Line{wall, zone}, nil
}

// plain rewords the library's error.
func plain(why string) string {
	return strings.NewReplacer("expected exactly", "want", "failed to parse int from", "no number:",
		"unrecognized descriptor:", "unknown word").Replace(why)
}

// mostSteps bounds the minutes of the wall clock that are passed over because they came already.
const mostSteps = 3000

// Next returns the first minute of the line after t; zero if there is none within five years.
func (l Line) Next(t time.Time) time.Time {
	at := t.In(l.zone)
	wall := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	for range mostSteps {
		if wall = l.wall.Next(wall); wall.IsZero() {
			return time.Time{}
		}
		if m := l.moment(wall); m.After(t) {
			return m.UTC()
		}
	}
	return time.Time{}
}

// moment returns when the zone's clock first shows a time or, where it never does, when it has
// jumped over it.
func (l Line) moment(wall time.Time) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, l.zone)
	shows := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	start, end := at.ZoneBounds()
	switch {
	case shows.After(wall):
		return start
	case shows.Before(wall):
		return end
	}
	// the clock shows it a second time: the first was in the zone's time before
	if _, before := start.Add(-time.Second).Zone(); !start.IsZero() {
		_, now := at.Zone()
		if first := at.Add(time.Duration(now-before) * time.Second); first.Before(start) && before > now {
			return first
		}
	}
	return at
}
