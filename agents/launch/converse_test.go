package launch

import (
	"testing"

	"sluice/engine"
)

// TestDayOfACorrection: an agent that is not asked again because the day's budget is used up waits for the next day.
func TestDayOfACorrection(t *testing.T) {
	x := withCorrection(engine.Exit{Usage: engine.Usage{Tokens: 5}}, waitsForDay(engine.Exit{Code: -1, NotStarted: "used up"}, "2027-01-15", "used up"))
	if x.Class != engine.ClassLimit || x.Budget != "2027-01-15" || !x.ResumeAt.Equal(DayEnd("2027-01-15")) || x.Usage.Tokens != 5 {
		t.Errorf("%+v", x)
	}
}
